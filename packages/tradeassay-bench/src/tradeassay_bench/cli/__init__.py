"""Define the commands for agents, runs and data."""
