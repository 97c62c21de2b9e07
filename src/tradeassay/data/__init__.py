"""Sources, calendars, the point-in-time store and synthetic worlds. Outside, only as-of views exist."""
