"""Prompts for the person at the terminal."""

__all__: list[str] = []
