"""The data doctor: names file, row and reason of everything that looks wrong."""
