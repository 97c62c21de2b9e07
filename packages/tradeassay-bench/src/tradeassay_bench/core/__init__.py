"""Provide the types that agents, the exchange and runs share."""
