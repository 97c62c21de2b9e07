"""Provide policies in compiled code. Each module documents the policy that it compiles.

``tests/arena/account/test_compiled_forms.py`` tests every compiled form against the exchange and
the ledger. The modules of this package import numba, so they are imported on first use.
"""
