"""How agents from outside take part: registration, tokens, limits, and the door they come in by."""
