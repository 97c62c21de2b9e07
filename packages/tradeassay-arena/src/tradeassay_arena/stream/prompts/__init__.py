"""What a summarising model is told. A change of one word is a new version."""
