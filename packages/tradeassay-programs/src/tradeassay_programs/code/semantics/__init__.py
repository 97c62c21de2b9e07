"""Frozen semantics: a strategy's meaning as rules, their interpreter, and what is made of them."""
