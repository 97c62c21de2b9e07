"""The benchmark Agent Market Arena."""
