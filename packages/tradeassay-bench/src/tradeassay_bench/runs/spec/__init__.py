"""Specify a run: its spec, its episodes and its plan."""
