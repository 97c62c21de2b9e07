"""Programs within other frameworks."""
