"""Command-line interface for programs."""
