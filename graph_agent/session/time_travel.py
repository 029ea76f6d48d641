"""Continue from an older checkpoint, and rewind conversation and files to one.

A rewind is recorded completely before anything is changed, and each of its steps can be repeated: if its process is
killed, the next one that holds the thread finishes it. All functions need the lock of the thread.

Sub-agents are rewound with it: one that worked at the checkpoint to where it was then, one that began later to its
start, where it asks for nothing and its call gets another sub-agent.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

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
from graph_agent.ports.time_travel import changes_by_path, find_foreign_change
from graph_agent.session.dependencies import SessionDependencies
from graph_agent.session.thread_graph import ThreadSnapshot, has_no_records, newest_call_ids, open_calls

__all__ = [
    "Conflict",
    "JournalFacts",
    "RewindPlan",
    "apply_rewind",
    "branch_from",
    "finish_interrupted_rewind",
    "last_reverted_attempt",
    "load_journal_facts",
    "plan_rewind",
    "plan_undo",
    "reevaluate_imported_calls",
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
    there = await _trusted_start(thread_id, await dependencies.graph.snapshot(checkpoint_id), dependencies)
    if not there.exists:
        raise _no_checkpoint(thread_id, checkpoint_id)
    await dependencies.decisions.supersede(thread_id, open_calls(there.values), dependencies.clock.now())
    await dependencies.graph.branch(there.checkpoint_id)


def _no_checkpoint(thread_id: str, checkpoint_id: str) -> UnknownId:
    """The error for a checkpoint that was never there, or was pruned."""
    return UnknownId(
        f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. "
        f"List its checkpoints: `graph-agent history {thread_id}`."
    )


async def reevaluate_imported_calls(thread_id: str, dependencies: SessionDependencies) -> frozenset[str]:
    """Let policy evaluate the open calls of an imported head again; returns those that a person must decide about.

    The copy that becomes the head counts as imported too, so that the same happens again after a kill.

    Raises:
        UsageError: the imported file does not contain how the model asked for these calls.
    """
    head = await dependencies.graph.snapshot()
    if head.is_idle or not await dependencies.is_imported(thread_id, head.checkpoint_id):
        return frozenset()
    there = await _trusted_start(thread_id, head, dependencies)
    await dependencies.decisions.supersede(thread_id, open_calls(head.values), dependencies.clock.now())
    # Also where that is the head itself: what was stored of the step after it does not come along.
    await dependencies.graph.branch(there.checkpoint_id)
    return frozenset(newest_call_ids(there.values))


async def _trusted_start(
    thread_id: str, there: ThreadSnapshot, dependencies: SessionDependencies
) -> ThreadSnapshot:
    """The checkpoint, or for an imported one the last before any of its open calls had a record.

    The records of an imported file are not trusted: from there on, the calls are evaluated by the rules here.
    """
    start = there.checkpoint_id
    while there.exists and await dependencies.is_imported(thread_id, there.checkpoint_id):
        if there.is_idle or (set(there.open_nodes) <= _BEFORE_CALLS and has_no_records(there.values)):
            return there
        if not there.parent_id:
            there = ThreadSnapshot(exists=False)
            break
        there = await dependencies.graph.snapshot(there.parent_id)
    if not there.exists and start:
        raise UsageError(
            f"Checkpoint {start!r} of thread {thread_id!r} was imported from a file that does not contain how its "
            f"open calls were requested. Choose an earlier one: `graph-agent history {thread_id}`."
        )
    return there


async def load_journal_facts(thread_id: str, values: Mapping[str, Any], journal: Journal) -> JournalFacts:
    """What the journal knows of the calls that a state holds as open, or does not know yet."""
    rows = {call_id: await journal.rows(thread_id, call_id) for call_id in open_calls(values)}
    reverted = await journal.reverted(thread_id, list(rows)) if rows else []
    # A reverted attempt with unknown effects may have left them behind.
    irreversible = {row.call_id for row in reverted if row.may_have_started and row.intent is None}
    begun = {call_id for call_id, found in rows.items() if any(row.may_have_started for row in found)}
    return JournalFacts(
        frozenset(call_id for call_id, found in rows.items() if any(row.is_finished for row in found)),
        frozenset(begun | irreversible),
        {row.call_id: row.attempt for row in reverted},
    )


async def last_reverted_attempt(journal: Journal, thread_id: str, call_id: str) -> int:
    """The newest attempt at a call that was reverted before the oldest one that counts; 0 if there is none.

    An attempt reverted after one that counts was run by the same sub-agent.
    """
    kept = [row.attempt for row in await journal.rows(thread_id, call_id) if row.may_have_started]
    reverted = [row.attempt for row in await journal.reverted(thread_id, [call_id])]
    return max((attempt for attempt in reverted if not kept or attempt < kept[0]), default=0)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file whose content is not what this thread left there."""

    path: str
    why: str
    can_be_forced: bool = True
    """False if it is never touched: outside the workspace, behind a link, no regular file."""


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """What a rewind would do; nothing has been done."""

    rewind: Rewind
    conflicts: tuple[Conflict, ...] = ()
    irreversible: tuple[ExecutedAttempt, ...] = ()
    """Attempts whose effects stay: commands, and writes that were not recorded."""


async def plan_rewind(
    thread_id: str, checkpoint_id: str, scope: RewindScope, dependencies: SessionDependencies
) -> RewindPlan:
    """Plan to restore the thread to a checkpoint.

    Raises:
        UnknownId: the thread has no such checkpoint.
    """
    there = await dependencies.graph.snapshot(checkpoint_id)
    if not there.exists:
        raise _no_checkpoint(thread_id, checkpoint_id)
    rewind = Rewind(thread_id, checkpoint_id, await dependencies.head(thread_id), scope)
    if scope == "chat":
        return RewindPlan(rewind)
    threads = await _activity_since(thread_id, there, dependencies)
    done = sorted((one for thread in threads for one in thread.done), key=attrgetter("started_at"))
    wanted: list[_WantedFile] = []
    for path, changes in changes_by_path(done).items():
        if (first := changes[0].intent) is not None:
            image = FileImage(first.before_sha256, first.before_blob, first.before_mode)
            explain = partial(find_foreign_change, changes=changes, done=done)
            wanted.append(_WantedFile(path, image, first.new_folder, explain))
    files, conflicts = await _plan_files(wanted, dependencies)
    untouched = {conflict.path for conflict in conflicts if not conflict.can_be_forced}

    def reverted(thread: _Activity) -> tuple[tuple[str, int], ...]:
        return tuple(
            (one.call_id, one.attempt)
            for one in thread.done
            if scope == "both" or (one.intent is not None and one.intent.path not in untouched)
        )

    own, *below = threads
    sub_agents = [
        SubAgentRewind(one.thread_id, one.checkpoint_id if scope == "both" else "", one.head, reverted(one))
        for one in below
    ]
    moved = tuple(one for one in sub_agents if one.calls or one.checkpoint_id not in ("", one.head))
    rewind = replace(rewind, files=files, calls=reverted(own), sub_agents=moved)
    irreversible = [one for thread in threads for one in thread.done if thread.has_lasting_effect(one)]
    return RewindPlan(rewind, conflicts, tuple(sorted(irreversible, key=attrgetter("started_at"))))


async def plan_undo(thread_id: str, dependencies: SessionDependencies) -> RewindPlan:
    """Plan to undo the last rewind.

    Raises:
        UsageError: there is none, or the checkpoint it came from was pruned.
    """
    last = await dependencies.rewinds.last(thread_id)
    if last is None and await dependencies.rewinds.has_imported(thread_id):
        raise UsageError(
            f"The rewinds of thread {thread_id!r} were imported from a file. They are history and cannot be undone."
        )
    if last is None:
        raise UsageError(f"thread {thread_id!r} has no rewind to undo")
    places = [(thread_id, last.head)] if last.scope != "files" else []
    sub_agents: list[SubAgentRewind] = []
    for one in last.sub_agents:
        place = one.head if one.checkpoint_id else ""
        sub_agents.append(SubAgentRewind(one.thread_id, place, await dependencies.head(one.thread_id), one.calls))
        places += [(one.thread_id, place)] if place else []
    for of, place in places:
        if not (await dependencies.graph.of(of).snapshot(place)).exists:
            raise UsageError(f"checkpoint {place!r}, which the rewind came from, was pruned; it cannot be undone")

    def explain(restored: FileImage, now: str | None) -> str:
        return "" if now == restored.sha256 else "it was changed since the rewind"

    wanted = [_WantedFile(one.path, one.current, None, partial(explain, one.target)) for one in last.files]
    files, conflicts = await _plan_files(wanted, dependencies)
    head = await dependencies.head(thread_id)
    undo = Rewind(thread_id, last.head, head, last.scope, files, last.calls, last.number, tuple(sub_agents))
    return RewindPlan(undo, conflicts)


async def apply_rewind(rewind: Rewind, dependencies: SessionDependencies) -> list[str]:
    """Do what was planned; returns a sentence for each file that was left unchanged.

    Raises:
        UsageError: a sub-agent was pruned since; nothing was done.
    """
    return await _complete(await dependencies.rewinds.plan(rewind), dependencies)


async def finish_interrupted_rewind(
    thread_id: str, dependencies: SessionDependencies
) -> tuple[Rewind, list[str]] | None:
    """Finish the rewind that a killed process left; returns it as `apply_rewind` does, None if there is none."""
    rewind = await dependencies.rewinds.unfinished(thread_id)
    return None if rewind is None else (rewind, await _complete(rewind, dependencies))


async def _complete(rewind: Rewind, dependencies: SessionDependencies) -> list[str]:
    left = [why for one in rewind.files if (why := await dependencies.files.restore_file(one))]
    own = SubAgentRewind(rewind.thread_id, rewind.checkpoint_id, rewind.head)
    # A parent last: if this is interrupted, a parent that was moved has no sub-agent that was not.
    for one in (*reversed(rewind.sub_agents), own) if rewind.scope != "files" else ():
        if not one.checkpoint_id or await dependencies.head(one.thread_id) != one.head:
            continue
        graph = dependencies.graph.of(one.thread_id)
        if (await graph.snapshot(one.checkpoint_id)).exists:
            await branch_from(one.thread_id, one.checkpoint_id, replace(dependencies, graph=graph))
        else:
            # The record of a rewind to a checkpoint that is gone must not lock the thread.
            left.append(
                f"the conversation of {one.thread_id} stays as it is: checkpoint {one.checkpoint_id} is gone"
            )
    await dependencies.rewinds.finish(rewind)
    return left


class _WantedFile(NamedTuple):
    path: str
    image: FileImage
    """What the file is to be."""
    new_folder: str | None
    explain_conflict: Callable[[str | None], str]
    """Takes the file's digest now; why that is a conflict, or nothing."""


async def _plan_files(
    wanted: Iterable[_WantedFile], dependencies: SessionDependencies
) -> tuple[tuple[FileRestoration, ...], tuple[Conflict, ...]]:
    files, conflicts = [], []
    for path, image, new_folder, explain_conflict in wanted:
        now = await dependencies.files.image(path)
        if isinstance(now, str):
            conflicts.append(Conflict(path, now, can_be_forced=False))
        elif now.sha256 != image.sha256:
            files.append(FileRestoration(path, now, image, new_folder))
            if why := explain_conflict(now.sha256):
                conflicts.append(Conflict(path, why))
    return tuple(files), tuple(conflicts)


@dataclass(frozen=True, slots=True)
class _Activity:
    """What one thread did since it was at a checkpoint."""

    thread_id: str
    checkpoint_id: str
    """Its checkpoint then; empty for a sub-agent that had none."""
    head: str
    done: tuple[ExecutedAttempt, ...]
    delegated: frozenset[str]
    """Calls that sub-agents worked on: those have an activity of their own."""

    def has_lasting_effect(self, one: ExecutedAttempt) -> bool:
        """Whether a rewind cannot revert it: a command, or a write that was not recorded."""
        is_seen_below = one.call_id in self.delegated
        return one.intent is None and one.kind != "readonly" and not one.changes_todo_only and not is_seen_below


async def _activity_since(
    thread_id: str, there: ThreadSnapshot, dependencies: SessionDependencies
) -> list[_Activity]:
    """What a thread and its sub-agents did since a checkpoint of it; parents before their sub-agents."""
    messages, records = there.values.get("messages") or [], there.values.get("calls") or {}
    ended = {str(message.tool_call_id) for message in messages if message.type == "tool"}
    ended |= {call_id for call_id, call in records.items() if call["status"] in FINAL}
    rows = await dependencies.rewinds.attempts_since(thread_id, there.created_at)
    done = tuple(one for one in rows if one.call_id not in ended)
    children = await dependencies.rewinds.sub_agents(thread_id)
    delegated = frozenset(call_id for _, call_id in children if call_id not in ended)
    found = [_Activity(thread_id, there.checkpoint_id, await dependencies.head(thread_id), done, delegated)]
    started_since = {one.call_id for one in done}
    for child, call_id in children:
        if call_id in ended:
            found += await _activity_on_other_branches(child, there, dependencies)
        elif await _was_working(child, thread_id, call_id, there, dependencies.journal):
            graph = dependencies.graph.of(child)
            place = await graph.snapshot_at(there.created_at)
            found += await _activity_since(child, place, replace(dependencies, graph=graph)) if place.exists else []
        elif call_id in started_since:
            found += await _whole_activity(child, dependencies)
    return found


async def _activity_on_other_branches(
    child: str, there: ThreadSnapshot, dependencies: SessionDependencies
) -> list[_Activity]:
    """What a sub-agent that had ended by the checkpoint did since: nothing, unless a rewind moved it after that."""
    if await dependencies.head(child) < there.checkpoint_id:  # Ids of checkpoints sort by time.
        return []
    graph = dependencies.graph.of(child)
    end = await graph.last_before(there.checkpoint_id)
    if not (end.exists and end.is_idle):  # The checkpoint at its end was pruned.
        return []
    return await _activity_since(child, end, replace(dependencies, graph=graph))


async def _was_working(child: str, thread_id: str, call_id: str, there: ThreadSnapshot, journal: Journal) -> bool:
    """Whether this sub-agent had begun its call at the checkpoint and not finished it."""
    if call_id not in open_calls(there.values):
        return False
    rows = await journal.rows(thread_id, call_id)
    before = [row for row in rows if row.may_have_started and row.started_at < there.created_at]
    if not before or any(row.is_finished for row in before):
        return False
    return child == sub_agent_id(thread_id, call_id, await last_reverted_attempt(journal, thread_id, call_id))


async def _whole_activity(thread_id: str, dependencies: SessionDependencies) -> list[_Activity]:
    """All that a sub-agent and those below it ever did."""
    done = tuple(await dependencies.rewinds.attempts_since(thread_id, ""))
    children = await dependencies.rewinds.sub_agents(thread_id)
    delegated = frozenset(call_id for _, call_id in children)
    start = (await dependencies.graph.of(thread_id).snapshot_at("")).checkpoint_id
    own = _Activity(thread_id, start, await dependencies.head(thread_id), done, delegated)
    return [own, *[one for child, _ in children for one in await _whole_activity(child, dependencies)]]
