"""Writes the pages of docs/ that are derived from the code. Knows the code; nothing in the code knows it."""

__all__: list[str] = []
