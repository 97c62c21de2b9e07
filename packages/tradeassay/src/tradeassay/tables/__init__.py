"""Read an account's own tables: returns, weights, trades."""
