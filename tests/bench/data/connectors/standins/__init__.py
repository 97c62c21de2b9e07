"""Servers on the loopback that speak the vendors' wire formats, filled with numbers of our own."""
