"""Commands about programs."""
