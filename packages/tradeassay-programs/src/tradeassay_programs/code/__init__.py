"""Models write strategies: tasks, runners, checks, stages and judges."""
