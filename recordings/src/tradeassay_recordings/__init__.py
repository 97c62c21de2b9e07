"""Recorded answers of real models, a folder per model and a file per run."""
