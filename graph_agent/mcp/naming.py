"""Names under which tools of servers are offered: what providers accept, and never two alike."""

import hashlib
import re
from collections.abc import Container, Sequence

__all__ = ["alike", "full_name", "is_of", "offered_name"]

_LONGEST = 64
"""Longest function name that providers of the OpenAI protocol accept; characters: letters, digits, `_` and `-`."""
_HASH_CHARS = 8
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def full_name(server: str, tool: str) -> str:
    """The name with the server's and the tool's own spelling, by which rules may speak of it."""
    return f"mcp__{server}__{tool}"


def offered_name(server: str, tool: str, taken: Container[str], *, is_marked: bool = False) -> str:
    """The name a model sees; one that had to be cut, is taken or to be marked ends in a hash of whose it is."""
    full = full_name(server, tool)
    name = _REFUSED.sub("_", full)
    if len(name) <= _LONGEST and name not in taken and not is_marked:
        return name
    whose = f"{server}\0{tool}" if is_marked else full
    mark = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{name[: _LONGEST - _HASH_CHARS - 1]}_{mark}"


def is_of(server: str, written: str) -> bool:
    """Whether a name is one that a tool of the server may have, offered or in the server's own spelling."""
    return written.startswith((full_name(server, ""), _REFUSED.sub("_", full_name(server, ""))))


def alike(servers: Sequence[str]) -> frozenset[str]:
    """Those whose tools could be taken for tools of one before them: their names are always marked."""
    names = [f"{_REFUSED.sub('_', server)}__" for server in servers]
    return frozenset(
        server
        for number, server in enumerate(servers)
        if any(_begins(names[number], before) for before in names[:number])
    )


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
