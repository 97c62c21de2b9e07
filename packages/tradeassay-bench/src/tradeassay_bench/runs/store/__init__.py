"""A run on disk: folder, manifest, outcomes, and reading it back."""
