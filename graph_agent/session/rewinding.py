"""Putting conversation and files back to a checkpoint, and taking that back. Decides what; the ports do it.

A rewind is noted whole before anything is touched, and every step of it can be done twice: whoever is killed leaves
a note from which the next one that holds the thread finishes. All functions need the thread's lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graph_agent.calls import FINAL
from graph_agent.errors import UnknownId, UsageError
from graph_agent.ports import Done, FileImage, Restoration, Rewind, RewindScope
from graph_agent.session.branching import go_back
from graph_agent.session.changes import by_path, objection
from graph_agent.session.parts import SessionParts
from graph_agent.session.run import Position

__all__ = ["Conflict", "Survey", "carry_out", "finish_broken_off", "survey", "survey_undo", "told_finished"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """A file that is not what this thread left there."""

    path: str
    why: str
    can_be_forced: bool = True
    """False where it is not touched at all: outside the workspace, behind a link, no regular file."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a rewind would do; nothing has been done."""

    rewind: Rewind
    conflicts: tuple[Conflict, ...] = ()
    lasting: tuple[Done, ...] = ()
    """What had effects that stay: commands, and what was written in ways nobody noted."""


async def survey(thread_id: str, checkpoint_id: str, scope: RewindScope, parts: SessionParts) -> Survey:
    """What putting the thread back to a checkpoint takes.

    Raises:
        UnknownId: the thread has no such checkpoint.
    """
    there = await parts.run.position(checkpoint_id)
    if not there.exists:
        raise UnknownId(f"thread {thread_id!r} has no checkpoint {checkpoint_id!r} (any more)")
    settled = _settled_calls(there)
    since = await parts.rewinds.done_since(thread_id, there.created_at)
    done = [one for one in since if one.call_id not in settled]
    rewind = Rewind(thread_id, checkpoint_id, await parts.head(thread_id), scope)
    if scope == "chat":
        return Survey(rewind)
    files, conflicts = await _files_of(done, parts)
    touched = {one.intent.path for one in done if one.intent} - {c.path for c in conflicts if not c.can_be_forced}
    calls = [one for one in done if scope == "both" or (one.intent is not None and one.intent.path in touched)]
    lasting = [one for one in done if one.intent is None and one.kind != "readonly" and not one.keeps_plan]
    undone = tuple((one.call_id, one.attempt) for one in calls)
    return Survey(replace(rewind, files=files, calls=undone), conflicts, tuple(lasting))


async def survey_undo(thread_id: str, parts: SessionParts) -> Survey:
    """What taking the last rewind back takes.

    Raises:
        UsageError: there is none, or where it came from was pruned.
    """
    last = await parts.rewinds.last(thread_id)
    if last is None:
        raise UsageError(f"thread {thread_id!r} has no rewind to undo")
    if last.scope != "files" and not (await parts.run.position(last.head)).exists:
        raise UsageError(f"checkpoint {last.head!r}, which the rewind came from, was pruned; it cannot be undone")
    files, conflicts = [], []
    for one in last.files:
        now = await parts.files.image(one.path)
        if isinstance(now, str):
            conflicts.append(Conflict(one.path, now, can_be_forced=False))
        elif now.sha256 != one.now.sha256:
            files.append(Restoration(one.path, now, one.now))
            if now.sha256 != one.then.sha256:
                conflicts.append(Conflict(one.path, "it was changed since the rewind"))
    head = await parts.head(thread_id)
    undo = Rewind(thread_id, last.head, head, last.scope, tuple(files), last.calls, undoes=last.number)
    return Survey(undo, tuple(conflicts))


async def carry_out(rewind: Rewind, parts: SessionParts) -> list[str]:
    """Do what was surveyed; returns a sentence for each file that was left as it is."""
    return await _complete(await parts.rewinds.plan(rewind), parts)


async def finish_broken_off(thread_id: str, parts: SessionParts) -> tuple[Rewind, list[str]] | None:
    """Finish the rewind that a killed process left; None where there is none."""
    rewind = await parts.rewinds.unfinished(thread_id)
    return None if rewind is None else (rewind, await _complete(rewind, parts))


def told_finished(rewind: Rewind, left: Sequence[str]) -> str:
    """A sentence about a rewind that was finished for somebody else."""
    told = f"a rewind to checkpoint {rewind.checkpoint_id} had been broken off and was finished now"
    return "; ".join([told, *left])


async def _complete(rewind: Rewind, parts: SessionParts) -> list[str]:
    left = [why for one in rewind.files if (why := await parts.files.put_back(one))]
    is_where_it_was = await parts.head(rewind.thread_id) == rewind.head
    if rewind.scope != "files" and is_where_it_was:
        await go_back(rewind.thread_id, rewind.checkpoint_id, parts)
    await parts.rewinds.finish(rewind)
    return left


def _settled_calls(there: Position) -> set[str]:
    """Calls that had their end at the checkpoint."""
    messages = there.values.get("messages") or []
    records = there.values.get("calls") or {}
    answered = {str(message.tool_call_id) for message in messages if message.type == "tool"}
    return answered | {call_id for call_id, call in records.items() if call["status"] in FINAL}


async def _files_of(
    done: Sequence[Done], parts: SessionParts
) -> tuple[tuple[Restoration, ...], tuple[Conflict, ...]]:
    files, conflicts = [], []
    for path, changes in by_path(done).items():
        first = changes[0].intent
        now = await parts.files.image(path)
        if isinstance(now, str):
            conflicts.append(Conflict(path, now, can_be_forced=False))
        elif first is not None and now.sha256 != first.before_sha256:
            then = FileImage(first.before_sha256, first.before_blob, first.before_mode)
            files.append(Restoration(path, now, then, first.new_folder))
            if why := objection(now.sha256, changes, done):
                conflicts.append(Conflict(path, why))
    return tuple(files), tuple(conflicts)
