"""Names in a row, as a line shows them. Knows nothing of what they name."""

from collections.abc import Sequence

__all__ = ["named"]

_SHOWN = 8


def named(names: Sequence[str], more: int = 0) -> str:
    """The first of the names and how many there are besides; `more` were never named."""
    shown, others = names[:_SHOWN], len(names[_SHOWN:]) + more
    listed = ", ".join(shown) or "nothing that git sees"
    return f"{listed} and {others} more" if others else listed
