"""Resolves the id that a user typed to one thread, checkpoint or call."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graph_agent.errors import UnknownId
from graph_agent.ports.read_store import IdKind, ReadStore

__all__ = ["ALL_KINDS", "Target", "resolve"]

ALL_KINDS: tuple[IdKind, ...] = ("thread", "checkpoint", "call")

_SHORTEST = 4
"""Characters of an id that a part of it needs."""
_LISTED = 8


@dataclass(frozen=True, slots=True)
class Target:
    """What an id refers to."""

    kind: IdKind
    thread_id: str
    id: str

    def __str__(self) -> str:
        """The id as it can be typed anywhere."""
        return self.id if self.kind == "thread" else f"{self.thread_id}:{self.id}"


def resolve(
    store: ReadStore, text: str, workspace: str | None = None, kinds: tuple[IdKind, ...] = ALL_KINDS
) -> Target:
    """The target of an exact id, a unique prefix or suffix of 4 or more characters, or THREAD:ID.

    What tables show of an id may be shortened in the same way. Exact ids win over parts of ids. Empty text means
    the newest thread that is no sub-agent's, of the workspace where one is given; one without messages only where
    there is no other.

    Raises:
        UnknownId: nothing matches, or several do; then the message lists them.
    """
    if not text:
        return _newest(store, workspace)
    found = (
        _matches(store, text, kinds, exact=True)
        or _matches_in_thread(store, text, kinds, exact=True)
        or (_matches(store, text, kinds, exact=False) if len(text) >= _SHORTEST else [])
        or _matches_in_thread(store, text, kinds, exact=False)
    )
    match found:
        case [target]:
            return target
        case []:
            raise UnknownId(_pruned(store, text) or _no_match(store, text, kinds))
        case _:
            raise UnknownId(_ambiguous(text, found))


def _matches(
    store: ReadStore, text: str, kinds: Sequence[IdKind], *, exact: bool, thread_id: str | None = None
) -> list[Target]:
    return [Target(*found) for found in store.matching_ids(kinds, text, exact=exact, thread_id=thread_id)]


def _matches_in_thread(store: ReadStore, text: str, kinds: Sequence[IdKind], *, exact: bool) -> list[Target]:
    """THREAD:ID; ids may hold colons themselves, so each colon is tried."""
    inner = [kind for kind in kinds if kind != "thread"]
    found: list[Target] = []
    for left, right in _splits(text) if inner else ():
        for thread in _threads(store, left, exact=exact):
            is_part = not exact and len(right) >= _SHORTEST
            found += _matches(store, right, inner, exact=True, thread_id=thread) or (
                _matches(store, right, inner, exact=False, thread_id=thread) if is_part else []
            )
    return list(dict.fromkeys(found))


def _splits(text: str) -> Iterator[tuple[str, str]]:
    """What is before and after each colon, where neither is empty."""
    for position, character in enumerate(text):
        if character == ":" and text[:position] and text[position + 1 :]:
            yield text[:position], text[position + 1 :]


def _threads(store: ReadStore, text: str, *, exact: bool) -> list[str]:
    found = _matches(store, text, ("thread",), exact=True)
    if not found and not exact and len(text) >= _SHORTEST:
        found = _matches(store, text, ("thread",), exact=False)
    return [target.thread_id for target in found]


def _newest(store: ReadStore, workspace: str | None) -> Target:
    thread_id = store.newest_thread(workspace)
    if thread_id is None:
        where = f"in {workspace}" if workspace is not None else f"in {store.path}"
        raise UnknownId(f"There are no threads {where} yet. `graph-agent threads list` shows those of all folders.")
    return Target("thread", thread_id, thread_id)


def _pruned(store: ReadStore, text: str) -> str | None:
    """The answer to the id of a checkpoint that was pruned; the text is an id, a part of one, or THREAD:ID."""
    thread, _, own = text.rpartition(":")
    found = store.pruned_checkpoint(thread, own, _SHORTEST)
    if found is None:
        return None
    thread_id, checkpoint_id, following = found
    advice = (
        f"The next one that exists is {following}."
        if following
        else f"`graph-agent inspect {thread_id}` shows what exists."
    )
    return f"Checkpoint {checkpoint_id} of thread {thread_id} was pruned. {advice}"


def _no_match(store: ReadStore, text: str, kinds: Sequence[IdKind]) -> str:
    """The message about an id that matches nothing; of THREAD:ID about the ID, where there is such a thread."""
    for left, right in _splits(text):
        if _threads(store, left, exact=True):
            inner = [kind for kind in kinds if kind != "thread"]
            return _unknown(right, inner or kinds, f" of thread {left}")
    return _unknown(text, kinds, "")


def _unknown(text: str, kinds: Sequence[IdKind], where: str) -> str:
    what = f"{', '.join(kinds[:-1])} or {kinds[-1]}{where}" if len(kinds) > 1 else f"{kinds[0]}{where}"
    if len(text) < _SHORTEST:
        return f"No {what} has the id {text!r}; an abbreviated id needs {_SHORTEST} or more characters."
    lists = "`graph-agent history` and" if where else "`graph-agent threads list` and"
    return f"No {what} matches {text!r}. {lists} `graph-agent calls` list the ids."


def _ambiguous(text: str, found: list[Target]) -> str:
    listed = "\n".join(f"  {target.kind} {target}" for target in found[:_LISTED])
    more = f"\n  … and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return f"{text!r} matches {len(found)} ids; name one of them:\n{listed}{more}"
