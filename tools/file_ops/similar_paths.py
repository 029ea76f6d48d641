"""What a path that leads nowhere may have meant. Names only what may be shown, and changes nothing."""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from tools.context import ToolContext
from tools.paths import PathRefused, ResolvedPath, containing_root
from tools.result import ToolErrorType

__all__ = ["missing_path"]

_MOST_NAMES = 2_000
"""Of a larger folder the first ones that the system tells are looked at."""
_MOST_SHOWN = 3
_ALIKE = 0.6


def missing_path(
    resolved: ResolvedPath, context: ToolContext, otherwise: str = "look with ls what is there"
) -> PathRefused:
    """The refusal of a path that leads nowhere, which names what it may have meant."""
    try:
        meant = dict.fromkeys(_meant(resolved.path, context))
    except OSError:
        # Something on the way may not be looked into; the path is absent all the same.
        meant = {}
    found = [_shown(path, context) for path in meant if context.may_read(path)][:_MOST_SHOWN]
    if found:
        return PathRefused(
            ToolErrorType.NOT_FOUND, f"{resolved.given!r} does not exist. Did you mean {' or '.join(found)}?"
        )
    return PathRefused(ToolErrorType.NOT_FOUND, f"{resolved.given!r} does not exist; {otherwise}.")


def _shown(path: Path, context: ToolContext) -> str:
    return repr(str(path.relative_to(context.workspace) if path.is_relative_to(context.workspace) else path))


def _meant(path: Path, context: ToolContext) -> Iterator[Path]:
    folder = next(above for above in path.parents if above.is_dir())
    if containing_root((context.workspace, *context.roots), folder) is None:
        return
    first, *rest = path.relative_to(folder).parts
    for name in _names(folder, first):
        found = folder.joinpath(name, *rest)
        if found.exists():
            yield found
        elif rest and (folder / name).is_dir():
            yield from _meant(found, context)
    if rest:
        yield from (folder / name for name in _names(folder, rest[-1]) if name.casefold() == rest[-1].casefold())


def _names(folder: Path, wanted: str) -> list[str]:
    """Entries of a folder that are written like this name, the likest first; hidden ones only for a hidden one."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_MOST_NAMES), strict=False)]
    except OSError:
        return []
    plain = {name.casefold(): name for name in names if name.startswith(".") == wanted.startswith(".")}
    near = difflib.get_close_matches(wanted.casefold(), plain, n=_MOST_SHOWN, cutoff=_ALIKE)
    return [plain[name] for name in near]
