"""Commands about agents, runs and data."""
