"""The data doctor: names the file, row and reason for everything that looks wrong."""
