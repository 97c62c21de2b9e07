"""What agents, the exchange and runs share: observations, orders, events, workers."""
