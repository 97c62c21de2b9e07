"""Labelled items, written for this project: sources, summaries with their faults, repeats, contradictions."""
