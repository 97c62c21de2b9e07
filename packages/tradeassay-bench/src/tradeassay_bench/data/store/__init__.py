"""The point-in-time store: one folder of memory-mapped Arrow files and a manifest per snapshot."""
