"""Models that mark each other's submissions, and people who do."""
