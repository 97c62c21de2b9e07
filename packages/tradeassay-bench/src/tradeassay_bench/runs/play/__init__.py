"""Carrying a run out: tasks, executors, journals, progress."""
