"""Commands for seasons of the arena."""
