"""Define the frozen semantics of strategies, their interpreter, and derived programs and tests."""
