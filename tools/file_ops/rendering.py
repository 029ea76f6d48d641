"""Lines of a file as a model reads them: numbered, long ones cut with a notice."""

from collections.abc import Iterable

__all__ = ["numbered"]


def numbered(lines: Iterable[str], first: int, line_chars: int) -> str:
    """The lines with their numbers, `first` being the number of the first one."""
    return "\n".join(f"{number:>6}\t{_cut(line, line_chars)}" for number, line in enumerate(lines, first))


def _cut(line: str, line_chars: int) -> str:
    if len(line) <= line_chars:
        return line
    return f"{line[:line_chars]} [… line cut, it has {len(line)} characters]"
