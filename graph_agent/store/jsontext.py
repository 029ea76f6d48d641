"""Values as JSON text for columns that people and plain tools read. Knows no table."""

import json
from typing import Any

__all__ = ["json_text", "storable"]


def json_text(value: Any) -> str:
    """Compact JSON; never raises for what a checkpoint can hold, odd values become their text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str, skipkeys=True)
    return storable(text)


def storable(text: str) -> str:
    """The text without lone surrogates, which a terminal or a model may send and SQLite refuses."""
    return text.encode("utf-8", "replace").decode()
