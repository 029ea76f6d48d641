"""Values as JSON text for columns that people and plain tools read."""

import json
from functools import partial
from typing import Any

__all__ = ["json_text", "storable"]

_dumps = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), default=str, skipkeys=True)


def json_text(value: Any) -> str:
    """Compact JSON, such as SQLite reads too; never raises for what a checkpoint holds: odd values become text."""
    try:
        text = _dumps(value, allow_nan=False)
    except ValueError:
        # Python writes and reads numbers that JSON does not have: NaN and the infinities.
        text = _dumps(json.loads(_dumps(value), parse_constant=str))
    return storable(text)


def storable(text: str) -> str:
    """The text without lone surrogates, which a terminal or a model may send and SQLite refuses."""
    return text.encode("utf-8", "replace").decode()
