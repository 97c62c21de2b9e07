"""How agents from outside take part: registration, tokens, limits, and the HTTP and MCP interfaces."""
