"""Which checkpoints a listing means, found by id and by what their metadata say."""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

__all__ = ["matching"]

_IDS = ("thread_id", "checkpoint_ns", "checkpoint_id")


def matching(
    connection: sqlite3.Connection, named: Mapping[str, Any], wanted: Mapping[str, Any], before: str | None
) -> list[tuple[str, str, str]]:
    """Thread, namespace and id of each checkpoint, newest first, that has the ids named and the metadata wanted.

    Metadata are compared as whole values in Python, so that no name from outside becomes part of a statement.
    """
    sought = {name: str(named[name]) for name in _IDS if named.get(name) is not None}
    terms, values = [f"{name} = ?" for name in sought], list(sought.values())
    if before is not None:
        terms.append("checkpoint_id < ?")
        values.append(before)
    where = f"WHERE {' AND '.join(terms)}" if terms else ""
    rows = connection.execute(
        f"SELECT {', '.join(_IDS)}, metadata FROM checkpoints {where} ORDER BY checkpoint_id DESC",  # noqa: S608 - names only
        values,
    )
    return [row[:3] for row in rows if _holds(json.loads(row[3] or b"{}"), wanted)]


def _holds(metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in metadata and metadata[name] == value for name, value in wanted.items())
