"""Takes a grant back, from any process; those that run see it at their next call."""

from pathlib import Path

from graph_agent.errors import UnknownId
from graph_agent.inspect import Reader
from graph_agent.ports import Clock, Grant, SystemClock
from graph_agent.store.database import Database
from graph_agent.store.grants import SqliteGrants

__all__ = ["revoke_grant"]


async def revoke_grant(database: Path, text: str, *, by: str, clock: Clock | None = None) -> Grant:
    """Revoke the grant with this id.

    Raises:
        UnknownId: no such grant stands; nothing is created or changed.
    """
    with Reader.open(database) as reader:
        standing = {str(grant.id): grant for grant in reader.grants()}
    named = standing.get(text.strip())
    if named is not None:
        async with await Database.open(database) as opened:
            revoked = await SqliteGrants(opened).revoke(named.id, by, (clock or SystemClock()).now())
        if revoked is not None:
            return revoked
    choice = f"these stand: {', '.join(standing)}" if standing else "none stands"
    raise UnknownId(f"there is no grant {text!r} (any more), {choice}; `graph-agent policy list` shows them")
