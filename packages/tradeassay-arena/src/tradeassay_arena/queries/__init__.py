"""Read the arena's database: typed answers for pages and programs, computed once per change and
never written back.
"""
