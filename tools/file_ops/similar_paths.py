"""What a path that does not exist may have meant: only names that may be shown."""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from tools.base import ToolContext
from tools.paths import PathRefused, ResolvedPath, containing_root, quoted_path, shown_path
from tools.result import ToolErrorType

__all__ = ["missing_path"]

_MAX_NAMES = 2_000
"""Of a larger folder only the first ones that the system lists are compared."""
_MAX_SHOWN = 3
_CUTOFF = 0.6


def missing_path(
    resolved: ResolvedPath, context: ToolContext, otherwise: str = "list the folder with ls"
) -> PathRefused:
    """The refusal of a path that does not exist, with similar paths that do."""
    try:
        similar = dict.fromkeys(_similar_paths(resolved.path, context))
    except OSError:
        # Some folder on the way may not be listed; the path is missing all the same.
        similar = {}
    found = [
        quoted_path(
            shown_path(str(path.relative_to(context.workspace) if path.is_relative_to(context.workspace) else path))
        )
        for path in similar
        if context.may_read(path)
    ][:_MAX_SHOWN]
    hint = f". Did you mean {' or '.join(found)}?" if found else f"; {otherwise}."
    return PathRefused(ToolErrorType.NOT_FOUND, f"{quoted_path(resolved.given)} does not exist{hint}")


def _similar_paths(path: Path, context: ToolContext) -> Iterator[Path]:
    folder = next(above for above in path.parents if above.is_dir())
    if containing_root((context.workspace, *context.roots), folder) is None:
        return
    first, *parts_below = path.relative_to(folder).parts
    for name in _similar_names(folder, first):
        found = folder.joinpath(name, *parts_below)
        if found.exists():
            yield found
        elif parts_below and (folder / name).is_dir():
            yield from _similar_paths(found, context)
    if parts_below:
        last = parts_below[-1].casefold()
        yield from (folder / name for name in _similar_names(folder, parts_below[-1]) if name.casefold() == last)


def _similar_names(folder: Path, wanted: str) -> list[str]:
    """Entries of a folder with a similar name, the most similar first; hidden ones only for a hidden name."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MAX_NAMES), strict=False)]
    except OSError:
        return []
    by_key = {name.casefold(): name for name in names if name.startswith(".") == wanted.startswith(".")}
    matches = difflib.get_close_matches(wanted.casefold(), by_key, n=_MAX_SHOWN, cutoff=_CUTOFF)
    return [by_key[name] for name in matches]
