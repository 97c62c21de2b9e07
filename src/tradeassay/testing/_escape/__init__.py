"""The escape suite: attacks, the targets they are after, and the control they must succeed in to count."""
