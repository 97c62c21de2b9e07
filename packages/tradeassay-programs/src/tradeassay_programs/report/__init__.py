"""Report on programs, in the terminal and as pages."""
