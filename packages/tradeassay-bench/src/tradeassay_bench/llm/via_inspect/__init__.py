"""Every provider that Inspect supports, asked through it.

Imported only when such a model is opened.
"""
