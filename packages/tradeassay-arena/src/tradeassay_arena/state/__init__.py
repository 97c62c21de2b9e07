"""Store the arena's state: tables, a store with transactions, and frozen records for readers."""
