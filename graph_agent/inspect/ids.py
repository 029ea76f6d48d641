"""From what a user typed to the one thread, checkpoint or call it means.

Ids a person may be about to type: the newest, and those that what was typed begins or ends.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from graph_agent.errors import UnknownId
from graph_agent.inspect.connection import ReadOnlyDatabase
from graph_agent.inspect.history import pruned_answer

__all__ = ["ALL_KINDS", "Kind", "SuggestedId", "Target", "read_suggested_checkpoints", "resolve"]

Kind = Literal["thread", "checkpoint", "call"]

ALL_KINDS: tuple[Kind, ...] = ("thread", "checkpoint", "call")

_SHORTEST = 4
_LISTED = 8
_SOURCES: dict[Kind, tuple[str, str]] = {
    "thread": ("thread_id", "threads"),
    # A fork has the checkpoints of its origin under the same ids: those mean the origin, unless a thread is named.
    "checkpoint": (
        "checkpoint_id",
        """checkpoints AS own WHERE checkpoint_ns = '' AND (:thread IS NOT NULL OR NOT EXISTS (
            SELECT 1 FROM threads f JOIN checkpoints c ON c.thread_id = f.parent_thread AND c.checkpoint_ns = ''
            AND c.checkpoint_id = own.checkpoint_id WHERE f.thread_id = own.thread_id))""",
    ),
    "call": ("call_id", "ledger"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """What an id stands for."""

    kind: Kind
    thread_id: str
    id: str

    def __str__(self) -> str:
        """The id as it can be typed anywhere."""
        return self.id if self.kind == "thread" else f"{self.thread_id}:{self.id}"


def resolve(
    database: ReadOnlyDatabase, text: str, workspace: str | None = None, kinds: tuple[Kind, ...] = ALL_KINDS
) -> Target:
    """The target of an exact id, a unique prefix or suffix of 4 or more characters, or THREAD:ID.

    Exact ids win over parts of ids. Empty text means the newest thread that is no sub-agent's, of the workspace
    where one is given; one in which nothing was said only where there is no other.

    Raises:
        UnknownId: nothing fits, or several do; then the message lists them.
    """
    if not text:
        return _newest(database, workspace)
    found = (
        _matches(database, text, kinds, exactly=True)
        or _in_thread(database, text, kinds, exactly=True)
        or (_matches(database, text, kinds, exactly=False) if len(text) >= _SHORTEST else [])
        or _in_thread(database, text, kinds, exactly=False)
    )
    match found:
        case [target]:
            return target
        case []:
            raise UnknownId(pruned_answer(database, text) or _nothing(database, text, kinds))
        case _:
            raise UnknownId(_ambiguous(text, found))


def _matches(
    database: ReadOnlyDatabase, text: str, kinds: tuple[Kind, ...], *, exactly: bool, thread_id: str | None = None
) -> list[Target]:
    selects, parameters = [], dict[str, Any](text=text, n=len(text), thread=thread_id)
    for kind in kinds:
        column, source = _SOURCES[kind]
        fits = f"{column} = :text"
        if not exactly:
            fits = f"(substr({column}, 1, :n) = :text OR substr({column}, -:n) = :text)"
        joint = "AND" if "WHERE" in source else "WHERE"
        within = "" if thread_id is None else "AND thread_id = :thread"
        selects.append(f"SELECT '{kind}', thread_id, {column} FROM {source} {joint} {fits} {within}")  # noqa: S608 - only ours
    rows = database.rows(f"{' UNION '.join(selects)} ORDER BY 2, 3", parameters)
    return [Target(kind, thread, found) for kind, thread, found in rows]


def _in_thread(database: ReadOnlyDatabase, text: str, kinds: tuple[Kind, ...], *, exactly: bool) -> list[Target]:
    """THREAD:ID; ids may hold colons themselves, so each colon is tried."""
    inner: tuple[Kind, ...] = tuple(kind for kind in kinds if kind != "thread")
    found: list[Target] = []
    for position, character in enumerate(text):
        left, right = text[:position], text[position + 1 :]
        if character != ":" or not inner or not left or not right:
            continue
        for thread in _one_side(database, left, exactly=exactly):
            is_part = not exactly and len(right) >= _SHORTEST
            found += _matches(database, right, inner, exactly=True, thread_id=thread) or (
                _matches(database, right, inner, exactly=False, thread_id=thread) if is_part else []
            )
    return list(dict.fromkeys(found))


def _one_side(database: ReadOnlyDatabase, text: str, *, exactly: bool) -> list[str]:
    exact = [target.thread_id for target in _matches(database, text, ("thread",), exactly=True)]
    if exact or exactly or len(text) < _SHORTEST:
        return exact
    return [target.thread_id for target in _matches(database, text, ("thread",), exactly=False)]


def _newest(database: ReadOnlyDatabase, workspace: str | None) -> Target:
    rows = database.rows(
        """SELECT thread_id FROM threads WHERE (?1 IS NULL OR workspace = ?1) AND parent_call IS NULL
        ORDER BY checkpoint_id IS NULL AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.thread_id = threads.thread_id),
            updated_at DESC, rowid DESC LIMIT 1""",
        (workspace,),
    )
    if not rows:
        where = f"in {workspace}" if workspace is not None else f"in {database.path}"
        raise UnknownId(f"there is no thread {where} yet; `graph-agent threads list` shows those of all folders.")
    [(thread_id,)] = rows
    return Target("thread", thread_id, thread_id)


def _nothing(database: ReadOnlyDatabase, text: str, kinds: tuple[Kind, ...]) -> str:
    """What is wrong with an id that means nothing; of THREAD:ID only the ID, where there is such a thread."""
    for position, character in enumerate(text):
        left, right = text[:position], text[position + 1 :]
        if character == ":" and right and _one_side(database, left, exactly=True):
            inner = tuple(kind for kind in kinds if kind != "thread")
            return _unknown(right, inner or kinds, f" of thread {left}")
    return _unknown(text, kinds, "")


def _unknown(text: str, kinds: tuple[Kind, ...], where: str) -> str:
    what = f"{', '.join(kinds[:-1])} or {kinds[-1]}{where}" if len(kinds) > 1 else f"{kinds[0]}{where}"
    if len(text) < _SHORTEST:
        return f"no {what} has the id {text!r}, and parts of an id need {_SHORTEST} or more characters."
    shows = "`graph-agent history` and" if where else "`graph-agent threads list` and"
    return (
        f"no {what} has an id that is, begins or ends with {text!r}; "
        f"{shows} `graph-agent calls` show the ids there are."
    )


def _ambiguous(text: str, found: list[Target]) -> str:
    listed = "\n".join(f"  {target.kind} {target}" for target in found[:_LISTED])
    more = f"\n  … and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return f"{text!r} stands for {len(found)} ids; type more of the one you mean:\n{listed}{more}"


class SuggestedId(NamedTuple):
    """An id and what it belongs to."""

    id: str
    title: str
    """Of the thread."""


def read_suggested_checkpoints(database: ReadOnlyDatabase, typed: str, most: int) -> list[SuggestedId]:
    """Checkpoints whose ids begin or end with what was typed, newest first; of all threads."""
    titles = dict(database.rows("SELECT thread_id, title FROM threads"))
    rows = database.rows(
        """SELECT checkpoint_id, min(thread_id) FROM checkpoints WHERE checkpoint_ns = ''
        AND (substr(checkpoint_id, 1, :n) = :typed OR substr(checkpoint_id, -:n) = :typed OR :n = 0)
        GROUP BY checkpoint_id ORDER BY checkpoint_id DESC LIMIT :most""",
        {"typed": typed, "n": len(typed), "most": most},
    )
    return [SuggestedId(identifier, str(titles.get(thread_id) or thread_id)) for identifier, thread_id in rows]
