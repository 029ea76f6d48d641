"""What an approval is bound to: a digest over exactly what was shown."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["args_digest"]


def args_digest(call_id: str, tool_name: str, attempt: int, arguments: Mapping[str, Any]) -> str:
    """SHA-256, in hex, over id, tool, attempt and arguments; independent of the order of the arguments' keys."""
    shown = json.dumps([call_id, tool_name, attempt, arguments], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(shown.encode()).hexdigest()
