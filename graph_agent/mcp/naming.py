"""Names under which tools of servers are offered: what providers accept, and never two alike."""

import hashlib
import re
from collections.abc import Container

__all__ = ["full_name", "offered_name"]

_LONGEST = 64
"""Longest function name that providers of the OpenAI protocol accept; characters: letters, digits, `_` and `-`."""
_HASH_CHARS = 8
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def full_name(server: str, tool: str) -> str:
    """The name with the server's and the tool's own spelling, by which rules may speak of it."""
    return f"mcp__{server}__{tool}"


def offered_name(server: str, tool: str, taken: Container[str]) -> str:
    """The name a model sees; one that had to be cut, or is taken, ends in a hash of the full name."""
    full = full_name(server, tool)
    name = _REFUSED.sub("_", full)
    if len(name) <= _LONGEST and name not in taken:
        return name
    mark = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{name[: _LONGEST - _HASH_CHARS - 1]}_{mark}"
