"""Numbers of things in words."""

__all__ = ["counted", "held_back"]


def counted(count: int, word: str) -> str:
    """The number with the word, in the plural where it is not one."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def held_back(count: int, word: str) -> str:
    """The line in place of what only --full shows."""
    return f"… {counted(count, word)}; --full shows {'it' if count == 1 else 'them'}"
