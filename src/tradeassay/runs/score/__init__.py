"""From journals to scores."""
