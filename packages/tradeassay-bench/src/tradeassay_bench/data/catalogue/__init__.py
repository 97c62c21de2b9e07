"""Real market data inside packages of the package index: what there is, what is wrong with it, how to get it."""
