"""Connect to every provider that Inspect supports.

This package is imported only when such a model is opened.
"""
