"""Adapters that run programs within other frameworks."""
