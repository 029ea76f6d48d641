"""One turn without a person at the terminal."""
