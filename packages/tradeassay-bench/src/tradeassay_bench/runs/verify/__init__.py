"""Verify a recorded run: recompute it and report the result of every claim."""
