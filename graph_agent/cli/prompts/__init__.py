"""Asks the person in front of the terminal."""

__all__: list[str] = []
