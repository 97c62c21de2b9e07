"""Rounds: who decides when, with what, and what it earns."""
