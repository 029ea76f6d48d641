"""Renders docs/thread.schema.json: what `threads export` writes, for programs."""

import json
from collections.abc import Sequence
from typing import Any

from graph_agent.ports.thread_file import FORMAT, SUB_AGENT, TABLES, VERSION, Column

__all__ = ["schema"]

_KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "number": {"type": "integer"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "json": {"type": ["object", "array"]},
    "json bytes": {"type": ["object", "array"]},
}
_DIGEST = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def schema() -> str:
    """The whole file, as it should stand on disk."""
    rows = [_row(table, columns) for table, columns in TABLES.items()]
    count = {"type": "integer", "minimum": 0}
    content = _closed(
        {
            "blob": {"type": "string", "pattern": "^blob:sha256:[0-9a-f]{64}$"},
            "data": {"type": ["string", "null"], "contentEncoding": "base64"},
        }
    )
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A thread as `graph-agent threads export` writes it",
        **_closed(
            {
                "format": {"const": FORMAT},
                "version": {"const": VERSION},
                "thread_id": {"type": "string", "minLength": 1},
                "rows": {"type": "array", "items": {"oneOf": rows}},
                "blobs": {"type": "array", "items": content},
                "end": _closed({"rows": count, "blobs": count, "sha256": _DIGEST}),
            }
        ),
    }
    return json.dumps(whole, indent=2) + "\n"


def _row(table: str, columns: Sequence[Column]) -> dict[str, Any]:
    row = _closed({"table": {"const": table}, **{one.name: _value(one) for one in columns}})
    row["properties"][SUB_AGENT] = {"type": "string", "minLength": 1}
    return {"title": table, **row}


def _value(column: Column) -> dict[str, Any]:
    kind = _KINDS[column.kind]
    if not column.may_be_null:
        return kind
    types = kind["type"] if isinstance(kind["type"], list) else [kind["type"]]
    return {**kind, "type": [*types, "null"]}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
