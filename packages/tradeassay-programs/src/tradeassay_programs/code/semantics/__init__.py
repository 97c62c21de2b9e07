"""Frozen semantics: a strategy's meaning as rules, their interpreter, and derived programs and
tests.
"""
