"""Policies in compiled code: each form is kept next to the policy it compiles, and is proven equal
to it.

``tests/arena/account/test_compiled_forms.py`` holds every form against the exchange and the ledger.
Modules below import numba, so they are imported on use.
"""
