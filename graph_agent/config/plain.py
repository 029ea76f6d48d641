"""Reading the user's own text files: only plain ones, because a pipe in their place would be waited for."""

from pathlib import Path

from graph_agent.config.paths import odd_kind

__all__ = ["plain_text"]


def plain_text(path: Path, *, errors: str = "strict") -> str:
    """The text of a file, without the mark that some editors begin it with.

    Raises:
        OSError: it cannot be read, or is no plain file.
        ValueError: it is not UTF-8, unless `errors` lets that pass.
    """
    if kind := odd_kind(path):
        raise OSError(f"it is {kind}, not a file")
    return path.read_text(encoding="utf-8", errors=errors).removeprefix("\ufeff")
