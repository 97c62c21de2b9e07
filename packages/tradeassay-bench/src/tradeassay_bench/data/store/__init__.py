"""Store snapshots for point-in-time access: one folder of memory-mapped Arrow files and a manifest
each.
"""
