"""The line of checkpoints that leads to one, without those of branches that were left."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.decode import decode_checkpoint, decode_metadata

__all__ = ["Stored", "line_to"]

# Found by the links, not by the order of the ids: ids rise within one process only.
_LINE = """WITH RECURSIVE line(id, parent, type, checkpoint, metadata) AS (
    SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints
    WHERE thread_id = ?1 AND checkpoint_ns = '' AND checkpoint_id = ?2
    UNION ALL
    SELECT c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint, c.metadata
    FROM line CROSS JOIN checkpoints c
    ON c.thread_id = ?1 AND c.checkpoint_ns = '' AND c.checkpoint_id = line.parent)
SELECT id, parent, type, checkpoint, metadata FROM line"""


@dataclass(frozen=True)
class Stored:
    """One checkpoint as it lies in the database."""

    id: str
    parent_id: str | None
    kind: str
    blob: bytes
    told: bytes | None

    @cached_property
    def checkpoint(self) -> dict[str, Any]:
        """The checkpoint itself.

        Raises:
            DamagedDatabase: it cannot be decoded.
        """
        return decode_checkpoint(self.kind, self.blob)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Which step made it and how; empty where nothing was noted. Fails as `checkpoint` does."""
        return decode_metadata(self.told)


def line_to(database: ReadOnlyDatabase, thread_id: str, checkpoint_id: str | None) -> Iterator[Stored]:
    """The checkpoint and its ancestors, nearest first, read as they are asked for.

    A line that bites its own tail ends there.
    """
    seen = set()
    for row in database.stream(_LINE, (thread_id, checkpoint_id)):
        stored = Stored(*row)
        if stored.id in seen:
            return
        seen.add(stored.id)
        yield stored
