"""Commands about a season."""
