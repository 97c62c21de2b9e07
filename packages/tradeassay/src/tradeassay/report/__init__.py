"""Pages, charts and terminal tables of verdicts. Nothing is computed here."""
