"""The live market: rounds that are decided exactly once, a checked information stream, and web
pages.

Paper trading only. Import the submodules directly. They need the extra ``[arena]``.
"""
