"""Code that all four packages share: errors, the registry, measures, files, hashes and secrets."""

__version__ = "0.1.0a1"
