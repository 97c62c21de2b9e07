"""Read the arena's database for pages and programs.

Results are computed once per change and never written back.
"""
