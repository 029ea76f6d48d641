"""Continue from an older checkpoint, and rewind conversation and files to one.

A rewind is recorded completely before anything is changed, and each of its steps can be repeated: if its process is
killed, the next one that holds the thread finishes it. All functions need the lock of the thread. Sub-agents are
rewound with it: one that worked at the checkpoint to where it was then, one that began later to its start, where it
asks for nothing and its call gets another.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graph_agent.calls import FINAL
from graph_agent.errors import UnknownId, UsageError
from graph_agent.ports import (
    ExecutedAttempt,
    FileImage,
    FileRestoration,
    Journal,
    Rewind,
    RewindScope,
    SubAgentRewind,
)
from graph_agent.ports.storage import sub_agent_id
from graph_agent.session.dependencies import SessionDependencies
from graph_agent.session.file_history import changes_by_path, find_foreign_change
from graph_agent.session.thread_graph import ThreadSnapshot, has_no_records, open_calls

__all__ = [
    "Conflict",
    "JournalFacts",
    "RewindPlan",
    "Since",
    "apply_rewind",
    "branch_from",
    "finish_interrupted_rewind",
    "format_finished_rewind",
    "last_reverted_attempt",
    "load_journal_facts",
    "no_checkpoint",
    "plan_rewind",
    "plan_undo",
    "reevaluate_imported_calls",
    "since",
]

_BEFORE_CALLS = frozenset(("__start__", "reasoning", "tool_routing"))
"""Nodes that may be open while policy has not evaluated any of the newest calls."""


@dataclass(frozen=True, slots=True)
class JournalFacts:
    """Open calls of which the journal knows more than the state."""

    finished: frozenset[str] = frozenset()
    """They have their result."""
    started: frozenset[str] = frozenset()
    """They may have had an effect."""
    reverted_attempts: Mapping[str, int] = field(default_factory=dict)
    """For each the newest attempt that a rewind reverted: its number is taken."""


async def branch_from(thread_id: str, checkpoint_id: str, dependencies: SessionDependencies) -> None:
    """Make an older checkpoint the head of the thread. If the process is killed meanwhile, this can be repeated.

    Answers about calls that are open there are superseded first: an approval is never used twice.

    Raises:
        UnknownId: the thread has no such checkpoint.
    """
    if checkpoint_id == await dependencies.head(thread_id):
        return
    there = await _known_beginning(thread_id, await dependencies.graph.snapshot(checkpoint_id), dependencies)
    if not there.exists:
        raise no_checkpoint(thread_id, checkpoint_id)
    await dependencies.decisions.supersede(thread_id, open_calls(there.values), dependencies.clock.now())
    await dependencies.graph.branch(there.checkpoint_id)


def no_checkpoint(thread_id: str, checkpoint_id: str) -> UnknownId:
    """The error for a checkpoint that was never there, or was pruned."""
    return UnknownId(
        f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. "
        f"List its checkpoints: `graph-agent history {thread_id}`."
    )


async def reevaluate_imported_calls(thread_id: str, dependencies: SessionDependencies) -> None:
    """Let policy evaluate the open calls of an imported head again, and ask about them again.

    Raises:
        UsageError: the imported file does not contain how the model asked for these calls.
    """
    head = await dependencies.graph.snapshot()
    if head.is_idle or not await dependencies.is_imported(thread_id, head.checkpoint_id):
        return
    there = await _known_beginning(thread_id, head, dependencies)
    await dependencies.decisions.supersede(thread_id, open_calls(head.values), dependencies.clock.now())
    # Also where that is the head itself: what was stored of the step after it does not come along.
    await dependencies.graph.branch(there.checkpoint_id)


async def _known_beginning(
    thread_id: str, there: ThreadSnapshot, dependencies: SessionDependencies
) -> ThreadSnapshot:
    """The checkpoint, or for an imported one the last before any of its open calls had a record.

    The records of an imported file are not trusted: from there on, the calls are evaluated by the rules here.
    """
    start = there.checkpoint_id
    while there.exists and await dependencies.is_imported(thread_id, there.checkpoint_id):
        if there.is_idle or (set(there.open_nodes) <= _BEFORE_CALLS and has_no_records(there.values)):
            return there
        there = (
            await dependencies.graph.snapshot(there.parent_id) if there.parent_id else ThreadSnapshot(exists=False)
        )
    if not there.exists and start:
        raise UsageError(
            f"Checkpoint {start!r} of thread {thread_id!r} was imported from a file that "
            f"does not contain how its open calls were requested. "
            f"Choose an earlier one: `graph-agent history {thread_id}`."
        )
    return there


async def load_journal_facts(thread_id: str, values: Mapping[str, Any], journal: Journal) -> JournalFacts:
    """What the journal knows of the calls that a state holds as open, or does not know yet."""
    rows = {call_id: await journal.rows(thread_id, call_id) for call_id in open_calls(values)}
    reverted = await journal.reverted(thread_id, list(rows)) if rows else []
    # What a rewind undid without knowing what it had changed may have left its effect behind.
    irreversible = {row.call_id for row in reverted if row.may_have_started and row.intent is None}
    begun = {call_id for call_id, found in rows.items() if any(row.may_have_started for row in found)}
    return JournalFacts(
        frozenset(call_id for call_id, found in rows.items() if any(row.is_finished for row in found)),
        frozenset(begun | irreversible),
        {row.call_id: row.attempt for row in reverted},
    )


@dataclass(frozen=True, slots=True)
class Since:
    """What one thread did since it stood somewhere."""

    thread_id: str
    checkpoint_id: str
    """Where that was; empty for a sub-agent that never stood anywhere."""
    head: str
    done: tuple[ExecutedAttempt, ...]
    delegated: frozenset[str] = frozenset()
    """Calls that sub-agents worked on: what those did stands by itself."""


async def since(thread_id: str, there: ThreadSnapshot, dependencies: SessionDependencies) -> list[Since]:
    """What a thread and its sub-agents did since a checkpoint of it; itself first, parents before their own."""
    settled = _settled_calls(there)
    rows = await dependencies.rewinds.attempts_since(thread_id, there.created_at)
    done = tuple(one for one in rows if one.call_id not in settled)
    children = [item for item in await dependencies.rewinds.sub_agents(thread_id) if item[1] not in settled]
    delegated = frozenset(call_id for _, call_id in children)
    found = [Since(thread_id, there.checkpoint_id, await dependencies.head(thread_id), done, delegated)]
    begun_since = {one.call_id for one in done}
    for child, call_id in children:
        if await _was_at_work(child, (thread_id, call_id), there, dependencies.journal):
            graph = dependencies.graph.of(child)
            place = await graph.snapshot_at(there.created_at)
            found += await since(child, place, replace(dependencies, graph=graph)) if place.exists else []
        elif call_id in begun_since:
            found += await _whole(child, dependencies)
    return found


async def last_reverted_attempt(journal: Journal, thread_id: str, call_id: str) -> int:
    """The newest attempt at a call that a rewind undid before the oldest that counts; 0 where there is none.

    An attempt reverted after one that counts was that sub-agent's, too.
    """
    kept = [row.attempt for row in await journal.rows(thread_id, call_id) if row.may_have_started]
    reverted = [row.attempt for row in await journal.reverted(thread_id, [call_id])]
    return max((attempt for attempt in reverted if not kept or attempt < kept[0]), default=0)


async def _was_at_work(child: str, of: tuple[str, str], there: ThreadSnapshot, journal: Journal) -> bool:
    thread_id, call_id = of
    if call_id not in open_calls(there.values):
        return False
    rows = await journal.rows(thread_id, call_id)
    before = [row for row in rows if row.may_have_started and row.started_at < there.created_at]
    if not before or any(row.is_finished for row in before):
        return False
    return child == sub_agent_id(thread_id, call_id, await last_reverted_attempt(journal, thread_id, call_id))


async def _whole(thread_id: str, dependencies: SessionDependencies) -> list[Since]:
    done = tuple(await dependencies.rewinds.attempts_since(thread_id, ""))
    children = await dependencies.rewinds.sub_agents(thread_id)
    delegated = frozenset(call_id for _, call_id in children)
    beginning = (await dependencies.graph.of(thread_id).snapshot_at("")).checkpoint_id
    own = Since(thread_id, beginning, await dependencies.head(thread_id), done, delegated)
    return [own, *[one for child, _ in children for one in await _whole(child, dependencies)]]


def _settled_calls(there: ThreadSnapshot) -> set[str]:
    """Calls that had their end at the checkpoint."""
    messages = there.values.get("messages") or []
    records = there.values.get("calls") or {}
    answered = {str(message.tool_call_id) for message in messages if message.type == "tool"}
    return answered | {call_id for call_id, call in records.items() if call["status"] in FINAL}


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file that is not what this thread left there."""

    path: str
    why: str
    can_be_forced: bool = True
    """False where it is not touched at all: outside the workspace, behind a link, no regular file."""


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What a rewind would do; nothing has been done."""

    rewind: Rewind
    conflicts: tuple[Conflict, ...] = ()
    irreversible: tuple[ExecutedAttempt, ...] = ()
    """What had effects that stay: commands, and what was written in ways nobody noted."""


async def plan_rewind(
    thread_id: str, checkpoint_id: str, scope: RewindScope, dependencies: SessionDependencies
) -> RewindPlan:
    """What putting the thread back to a checkpoint takes.

    Raises:
        UnknownId: the thread has no such checkpoint.
    """
    there = await dependencies.graph.snapshot(checkpoint_id)
    if not there.exists:
        raise no_checkpoint(thread_id, checkpoint_id)
    rewind = Rewind(thread_id, checkpoint_id, await dependencies.head(thread_id), scope)
    if scope == "chat":
        return RewindPlan(rewind)
    own, *below = found = await since(thread_id, there, dependencies)
    done = _in_time(one for part in found for one in part.done)
    files, conflicts = await _files_of(done, dependencies)
    untouched = {conflict.path for conflict in conflicts if not conflict.can_be_forced}

    def reverted(part: Since) -> tuple[tuple[str, int], ...]:
        ours = [one for one in part.done if scope == "both" or (one.intent and one.intent.path not in untouched)]
        return tuple((one.call_id, one.attempt) for one in ours)

    along = [
        SubAgentRewind(part.thread_id, part.checkpoint_id if scope == "both" else "", part.head, reverted(part))
        for part in below
    ]
    moved = tuple(one for one in along if one.calls or one.checkpoint_id not in ("", one.head))
    irreversible = _in_time(one for part in found for one in part.done if _lasts(one, part))
    return RewindPlan(
        replace(rewind, files=files, calls=reverted(own), sub_agents=moved), conflicts, tuple(irreversible)
    )


async def plan_undo(thread_id: str, dependencies: SessionDependencies) -> RewindPlan:
    """What taking the last rewind back takes.

    Raises:
        UsageError: there is none, or where it came from was pruned.
    """
    last = await dependencies.rewinds.last(thread_id)
    if last is None:
        raise UsageError(f"thread {thread_id!r} has no rewind to undo")
    along = []
    for one in last.sub_agents:
        place = one.head if one.checkpoint_id else ""
        along.append(SubAgentRewind(one.thread_id, place, await dependencies.head(one.thread_id), one.calls))
    places = [(thread_id, last.head)] if last.scope != "files" else []
    for of, head in [*places, *[(one.thread_id, one.checkpoint_id) for one in along if one.checkpoint_id]]:
        if not (await dependencies.graph.of(of).snapshot(head)).exists:
            raise UsageError(f"checkpoint {head!r}, which the rewind came from, was pruned; it cannot be undone")
    files, conflicts = await _files_of_undo(last, dependencies)
    head = await dependencies.head(thread_id)
    undo = Rewind(thread_id, last.head, head, last.scope, files, last.calls, last.number, tuple(along))
    return RewindPlan(undo, conflicts)


async def _files_of_undo(
    last: Rewind, dependencies: SessionDependencies
) -> tuple[tuple[FileRestoration, ...], tuple[Conflict, ...]]:
    files, conflicts = [], []
    for one in last.files:
        now = await dependencies.files.image(one.path)
        if isinstance(now, str):
            conflicts.append(Conflict(one.path, now, can_be_forced=False))
        elif now.sha256 != one.current.sha256:
            files.append(FileRestoration(one.path, now, one.current))
            if now.sha256 != one.target.sha256:
                conflicts.append(Conflict(one.path, "it was changed since the rewind"))
    return tuple(files), tuple(conflicts)


async def apply_rewind(rewind: Rewind, dependencies: SessionDependencies) -> list[str]:
    """Do what was surveyed; returns a sentence for each file that was left as it is.

    Raises:
        UsageError: a sub-agent was pruned since; nothing was done.
    """
    return await _complete(await dependencies.rewinds.plan(rewind), dependencies)


async def finish_interrupted_rewind(
    thread_id: str, dependencies: SessionDependencies
) -> tuple[Rewind, list[str]] | None:
    """Finish the rewind that a killed process left; None where there is none."""
    rewind = await dependencies.rewinds.unfinished(thread_id)
    return None if rewind is None else (rewind, await _complete(rewind, dependencies))


def format_finished_rewind(rewind: Rewind, left: Sequence[str]) -> str:
    """A sentence about a rewind that was finished for somebody else."""
    finished = f"An interrupted rewind to checkpoint {rewind.checkpoint_id} was finished now"
    return "; ".join([finished, *left])


async def _complete(rewind: Rewind, dependencies: SessionDependencies) -> list[str]:
    left = [why for one in rewind.files if (why := await dependencies.files.restore_file(one))]
    if rewind.scope != "files":
        # A parent last: wherever it stands, its sub-agents stood there before.
        own = SubAgentRewind(rewind.thread_id, rewind.checkpoint_id, rewind.head)
        for one in (*reversed(rewind.sub_agents), own):
            if one.checkpoint_id and await dependencies.head(one.thread_id) == one.head:
                left += await _taken_back(one, replace(dependencies, graph=dependencies.graph.of(one.thread_id)))
    await dependencies.rewinds.finish(rewind)
    return left


async def _taken_back(one: SubAgentRewind, dependencies: SessionDependencies) -> list[str]:
    """Nothing, or why the conversation stays where it is: a note that leads nowhere must lock no thread."""
    if not (await dependencies.graph.snapshot(one.checkpoint_id)).exists:
        return [f"the conversation of {one.thread_id} stays as it is: checkpoint {one.checkpoint_id} is gone"]
    await branch_from(one.thread_id, one.checkpoint_id, dependencies)
    return []


def _in_time(done: Iterable[ExecutedAttempt]) -> list[ExecutedAttempt]:
    return sorted(done, key=lambda one: one.started_at)


def _lasts(one: ExecutedAttempt, part: Since) -> bool:
    is_seen_below = one.call_id in part.delegated
    return one.intent is None and one.kind != "readonly" and not one.changes_todo_only and not is_seen_below


async def _files_of(
    done: Sequence[ExecutedAttempt], dependencies: SessionDependencies
) -> tuple[tuple[FileRestoration, ...], tuple[Conflict, ...]]:
    files, conflicts = [], []
    for path, changes in changes_by_path(done).items():
        first = changes[0].intent
        now = await dependencies.files.image(path)
        if isinstance(now, str):
            conflicts.append(Conflict(path, now, can_be_forced=False))
        elif first is not None and now.sha256 != first.before_sha256:
            then = FileImage(first.before_sha256, first.before_blob, first.before_mode)
            files.append(FileRestoration(path, now, then, first.new_folder))
            if why := find_foreign_change(now.sha256, changes, done):
                conflicts.append(Conflict(path, why))
    return tuple(files), tuple(conflicts)
