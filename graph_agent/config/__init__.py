"""Settings and places. Knows nothing of what they are for."""
