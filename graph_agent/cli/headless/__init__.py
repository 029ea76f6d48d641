"""A turn without a person: `run`, and what it reports."""
