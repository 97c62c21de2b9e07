"""The prompts of the summarising model. A change of one word is a new version."""
