"""Deriving a recorded run again and saying what holds."""
