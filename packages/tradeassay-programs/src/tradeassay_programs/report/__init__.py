"""Reports on programs for the terminal and as pages."""
