"""Models that are programs: deterministic, free, and able to play every protocol of the house."""
