"""Putting conversation and files back to a checkpoint, and taking that back. Decides what; the ports do it.

A rewind is noted whole before anything is touched, and every step of it can be done twice: whoever is killed leaves
a note from which the next one that holds the thread finishes. All functions need the thread's lock.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from graph_agent.errors import UsageError
from graph_agent.ports import Done, FileImage, Restoration, Rewind, RewindScope, TakenAlong
from graph_agent.session.branching import go_back, no_checkpoint
from graph_agent.session.changes import by_path, objection
from graph_agent.session.lineage import Since, since
from graph_agent.session.parts import SessionParts

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
        raise no_checkpoint(thread_id, checkpoint_id)
    rewind = Rewind(thread_id, checkpoint_id, await parts.head(thread_id), scope)
    if scope == "chat":
        return Survey(rewind)
    own, *below = found = await since(thread_id, there, parts)
    done = _in_time(one for part in found for one in part.done)
    files, conflicts = await _files_of(done, parts)
    untouched = {conflict.path for conflict in conflicts if not conflict.can_be_forced}

    def undone(part: Since) -> tuple[tuple[str, int], ...]:
        ours = [one for one in part.done if scope == "both" or (one.intent and one.intent.path not in untouched)]
        return tuple((one.call_id, one.attempt) for one in ours)

    along = [
        TakenAlong(part.thread_id, part.checkpoint_id if scope == "both" else "", part.head, undone(part))
        for part in below
    ]
    moved = tuple(one for one in along if one.calls or one.checkpoint_id not in ("", one.head))
    lasting = _in_time(one for part in found for one in part.done if _lasts(one, part))
    return Survey(replace(rewind, files=files, calls=undone(own), sub_agents=moved), conflicts, tuple(lasting))


async def survey_undo(thread_id: str, parts: SessionParts) -> Survey:
    """What taking the last rewind back takes.

    Raises:
        UsageError: there is none, or where it came from was pruned.
    """
    last = await parts.rewinds.last(thread_id)
    if last is None:
        raise UsageError(f"thread {thread_id!r} has no rewind to undo")
    along = []
    for one in last.sub_agents:
        place = one.head if one.checkpoint_id else ""
        along.append(TakenAlong(one.thread_id, place, await parts.head(one.thread_id), one.calls))
    places = [(thread_id, last.head)] if last.scope != "files" else []
    for of, head in [*places, *[(one.thread_id, one.checkpoint_id) for one in along if one.checkpoint_id]]:
        if not (await parts.run.of(of).position(head)).exists:
            raise UsageError(f"checkpoint {head!r}, which the rewind came from, was pruned; it cannot be undone")
    files, conflicts = await _files_of_undo(last, parts)
    head = await parts.head(thread_id)
    undo = Rewind(thread_id, last.head, head, last.scope, files, last.calls, last.number, tuple(along))
    return Survey(undo, conflicts)


async def _files_of_undo(last: Rewind, parts: SessionParts) -> tuple[tuple[Restoration, ...], tuple[Conflict, ...]]:
    files, conflicts = [], []
    for one in last.files:
        now = await parts.files.image(one.path)
        if isinstance(now, str):
            conflicts.append(Conflict(one.path, now, can_be_forced=False))
        elif now.sha256 != one.now.sha256:
            files.append(Restoration(one.path, now, one.now))
            if now.sha256 != one.then.sha256:
                conflicts.append(Conflict(one.path, "it was changed since the rewind"))
    return tuple(files), tuple(conflicts)


async def carry_out(rewind: Rewind, parts: SessionParts) -> list[str]:
    """Do what was surveyed; returns a sentence for each file that was left as it is.

    Raises:
        UsageError: a sub-agent was pruned since; nothing was done.
    """
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
    if rewind.scope != "files":
        # A parent last: wherever it stands, its sub-agents stood there before.
        own = TakenAlong(rewind.thread_id, rewind.checkpoint_id, rewind.head)
        for one in (*reversed(rewind.sub_agents), own):
            if one.checkpoint_id and await parts.head(one.thread_id) == one.head:
                left += await _taken_back(one, replace(parts, run=parts.run.of(one.thread_id)))
    await parts.rewinds.finish(rewind)
    return left


async def _taken_back(one: TakenAlong, parts: SessionParts) -> list[str]:
    """Nothing, or why the conversation stays where it is: a note that leads nowhere must lock no thread."""
    if not (await parts.run.position(one.checkpoint_id)).exists:
        return [f"the conversation of {one.thread_id} stays as it is: checkpoint {one.checkpoint_id} is gone"]
    await go_back(one.thread_id, one.checkpoint_id, parts)
    return []


def _in_time(done: Iterable[Done]) -> list[Done]:
    return sorted(done, key=lambda one: one.started_at)


def _lasts(one: Done, part: Since) -> bool:
    is_seen_below = one.call_id in part.delegated
    return one.intent is None and one.kind != "readonly" and not one.keeps_plan and not is_seen_below


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
