"""Execute a run: tasks, executors, journals, progress."""
