"""The arena's memory: one database, one writer class, frozen records out of it."""
