"""Pages, charts and terminal tables of verdicts. This package computes no results."""
