"""Let outside agents take part: registration, tokens, limits, and the HTTP and MCP interfaces."""
