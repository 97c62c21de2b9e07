"""The arena's pages, its JSON interface and its live stream. Needs the extra ``[arena]``."""
