"""Every provider that Inspect knows, asked through it. Imported only when such a model is opened."""
