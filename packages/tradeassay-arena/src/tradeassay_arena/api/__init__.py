"""Participation of outside agents: registration, tokens, limits, and the HTTP and MCP
interfaces.
"""
