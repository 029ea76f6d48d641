"""What a journal row recorded as the outcome of a call; big ones stand in a compressed file beside the database."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.config.paths import blob_dir

__all__ = ["read_outcome"]

_PREFIX = "blob:sha256:"


def read_outcome(text: str, database: Path) -> Mapping[str, Any]:
    """The outcome, `{status, output, error, ...}`; empty where its file is gone or torn."""
    try:
        outcome: Any = json.loads(text)
        if isinstance(outcome, dict) and "blob" in outcome:
            outcome = json.loads(_content(str(outcome["blob"]), blob_dir(database)))
    except (OSError, ValueError, zlib.error):
        return {}
    return outcome if isinstance(outcome, dict) else {}


def _content(reference: str, folder: Path) -> bytes:
    digest = reference.removeprefix(_PREFIX)
    if not digest.isalnum():
        raise ValueError(f"{reference!r} is no reference to a blob")
    content = zlib.decompress((folder / "objects" / digest[:2] / digest[2:]).read_bytes())
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{reference!r} does not hold what its name says")
    return content
