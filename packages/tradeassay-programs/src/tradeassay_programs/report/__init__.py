"""Pages of programs."""
