"""Decisions and what they are worth: compiled strategies, and pricing at several cost levels in one pass."""
