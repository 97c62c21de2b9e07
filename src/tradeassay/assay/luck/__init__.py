"""Luck."""
