"""Frozen semantics: a strategy's meaning as rules that machines read, their interpreter, and what is made of them."""
