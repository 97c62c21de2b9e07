"""The arena's database: one writer class, and frozen records for readers."""
