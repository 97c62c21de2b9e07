"""Dated tables about other people's models: prices and knowledge cutoffs. A user's file overrides them."""
