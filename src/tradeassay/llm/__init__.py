"""Language models: access to any provider, recorded answers, budgets, scripted and local models."""
