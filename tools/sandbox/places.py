"""Where files are mounted over others in a sandbox: one table, in which the more exact path always wins."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

__all__ = ["Mount", "in_order"]

Kind = Literal["write", "read", "empty"]


class Mount(NamedTuple):
    """One path and what becomes of it."""

    path: Path
    kind: Kind
    """write: as it is; read: as it is, unchangeable; empty: nothing in it, unchangeable."""
    source: Path | None = None
    """What is shown there instead; None for the path itself."""

    def lies_in(self, folder: Path) -> bool:
        """Whether it is below a folder, or the folder itself."""
        return self.path.is_relative_to(folder)


_RANK: dict[Kind, int] = {"write": 0, "read": 1, "empty": 2}


def in_order(mounts: list[Mount]) -> Iterator[Mount]:
    """Outer before inner, and of one path only the strictest: so that nothing opens what another one closed."""
    strictest: dict[Path, Mount] = {}
    for mount in mounts:
        known = strictest.get(mount.path)
        if known is None or _RANK[mount.kind] > _RANK[known.kind]:
            strictest[mount.path] = mount
    yield from sorted(strictest.values(), key=lambda mount: len(mount.path.parts))
