"""Store and read a run on disk: folder, manifest and outcomes."""
