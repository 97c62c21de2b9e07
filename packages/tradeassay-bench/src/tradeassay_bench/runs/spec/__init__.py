"""Specify a run: its spec, its agents and models, its plan."""
