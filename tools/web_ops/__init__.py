"""Tools that access the web."""
