"""Show interrupted calls and decide them from any process. The graph does not run here.

A call that is still stored as executing counts as interrupted once its process is dead: the question about it
follows from its record, so its answer can be recorded before it is asked.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from graph_agent.app.approvals import RecordedAnswer
from graph_agent.app.project_trust import settings_at
from graph_agent.app.reader import read_database
from graph_agent.app.toolset import default_registry, full_registry, read_only_toolbox
from graph_agent.config.paths import blob_dir
from graph_agent.errors import AnswerRefused, ConfigError, StorageError, UnknownId
from graph_agent.inspect import CallView, Reader, Target
from graph_agent.ports import Answer, Clock, JournalRow, Question, Scope, SystemClock
from graph_agent.session.recovery import (
    describe_question,
    end_running,
    explain_refused_retry,
    process_traces,
    running_pids,
)
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.toolbox import MCP_PREFIX
from tools.registry import ToolRegistry

if TYPE_CHECKING:
    from graph_agent.calls import ToolCallInfo


__all__ = ["Decision", "Interrupted", "decide_calls", "interrupted_calls"]

_Kind = Literal["retry", "done", "cancel"]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A call that waits for a recovery decision, or has one that its thread has not taken in yet."""

    name: str
    """How commands name it: its call id, or THREAD:CALL where several threads have that id."""
    view: CallView
    found: OpenQuestion


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decides about one interrupted call."""

    kind: _Kind
    call: str
    """Call id, a part of one, or THREAD:CALL; `all` for every undecided one."""
    result: str = ""
    """With done: the result for the model."""


async def interrupted_calls(database: Path, thread: str | None) -> list[Interrupted]:
    """The interrupted calls of a thread, or of all, with what can be found out about each.

    Raises:
        UnknownId: there is no such thread, or several.
    """
    with read_database(database) as reader:
        views = _interrupted(reader, thread)
        workspaces = {view.thread_id: Path(reader.thread(view.thread_id).workspace) for view in views}
        attempts = [reader.attempts(view.thread_id, view.record["call_id"]) for view in views]
        names = [_name(view, reader.shared_call_ids()) for view in views]
    return [
        Interrupted(name, view, await _look(view, rows, workspaces[view.thread_id], database))
        for name, view, rows in zip(names, views, attempts, strict=True)
    ]


async def decide_calls(
    database: Path,
    thread: str | None,
    decisions: Sequence[Decision],
    *,
    by: str,
    end_processes: bool = False,
    clock: Clock | None = None,
) -> list[RecordedAnswer]:
    """Record decisions; of each call the first one wins. Nothing is recorded when one of them cannot be.

    Raises:
        UnknownId: an id names nothing, or several calls.
        AnswerRefused: a call is not interrupted, is decided on twice, or is to be retried while it still runs.
    """
    with read_database(database) as reader:
        chosen = _chosen(reader, thread, decisions)
        attempts = {key: reader.attempts(*key) for key in chosen}
    for key, (view, decision) in chosen.items():
        left = process_traces(attempts[key], view.thread_id, FileBlobs(blob_dir(database)))
        if end_processes and view.is_interrupted:
            await end_running(left)
        if decision.kind == "retry" and view.is_interrupted:
            _require_ended(view, running_pids(left), end_processes=end_processes)
    now = (clock or SystemClock()).now()
    async with await Database.open(database) as opened:
        store = SqliteDecisions(opened)
        return [await _insert(store, view, Answer(d.kind, by, now, reason=d.result)) for view, d in chosen.values()]


_Key = tuple[str, str]


def _chosen(
    reader: Reader, thread: str | None, decisions: Sequence[Decision]
) -> Mapping[_Key, tuple[CallView, Decision]]:
    chosen: dict[_Key, tuple[CallView, Decision]] = {}
    for decision in sorted(decisions, key=lambda one: one.call == "all"):
        is_all = decision.call == "all"
        views = _undecided(reader, thread) if is_all else [_named(reader, thread, decision.call)]
        for view in views:
            key = view.thread_id, view.record["call_id"]
            if key in chosen and not is_all:
                raise AnswerRefused(f"call {key[1]!r} is decided on twice; leave one of the options out")
            chosen.setdefault(key, (view, decision))
    return chosen


def _interrupted(reader: Reader, thread: str | None) -> list[CallView]:
    wanted = None if thread is None else _family(reader, thread)
    return [view for view in reader.interrupted() if wanted is None or view.thread_id in wanted]


def _family(reader: Reader, thread: str) -> list[str]:
    """A thread and the sub-agents below it: what breaks off in them is decided with it."""
    own = reader.resolve(thread, kinds=("thread", "checkpoint")).thread_id
    below = [one.thread_id for one in reader.family(own) if one.thread_id != own]
    return [own, *below]


def _undecided(reader: Reader, thread: str | None) -> list[CallView]:
    return [view for view in _interrupted(reader, thread) if view.is_interrupted]


def _named(reader: Reader, thread: str | None, text: str) -> CallView:
    target = _target(reader, thread, text)
    view = reader.call(target.thread_id, target.id)
    status = view.record["status"]
    if status == "interrupted" or _decided_before(view) is not None:
        return view
    advice = "`graph-agent recover` shows the calls that do"
    if status == "executing":
        advice = "the process that holds its thread is running it"
    elif status == "awaiting_approval":
        advice = "it waits for an approval: `graph-agent approvals`"
    raise AnswerRefused(f"call {target.id!r} does not wait for a recovery decision, it is {status}; {advice}.")


def _target(reader: Reader, thread: str | None, text: str) -> Target:
    if thread is None or ":" in text:
        return reader.resolve(text, kinds=("call",))
    own, *below = _family(reader, thread)
    for child in below:
        with contextlib.suppress(UnknownId):
            return reader.resolve(f"{child}:{text}", kinds=("call",))
    return reader.resolve(f"{own}:{text}", kinds=("call",))


def _require_ended(view: CallView, left: Sequence[int], *, end_processes: bool) -> None:
    if left:
        advice = "" if end_processes else " (--end-processes ends them)"
        raise AnswerRefused(f"{explain_refused_retry(view.record['call_id'], left)}{advice}")


def _decided_before(view: CallView) -> RecordedAnswer | None:
    """The decision that its thread has taken in already; None for a call that is interrupted or never was."""
    answer = view.answer
    if view.record["status"] == "interrupted" or answer is None or answer.kind not in get_args(_Kind):
        return None
    return RecordedAnswer(
        view.record["call_id"], view.thread_id, answer.kind, accepted=False, by=answer.by, at=answer.at
    )


async def _insert(store: SqliteDecisions, view: CallView, answer: Answer) -> RecordedAnswer:
    if late := _decided_before(view):
        return late
    standing = await store.insert(view.thread_id, _question(view), answer)
    return RecordedAnswer(
        view.record["call_id"], view.thread_id, standing.kind, standing == answer, standing.by, standing.at
    )


async def _look(view: CallView, rows: Sequence[JournalRow], workspace: Path, database: Path) -> OpenQuestion:
    call = cast("ToolCallInfo", dict(view.record))
    scope = Scope(view.thread_id, "default", str(workspace))
    registry = await asyncio.to_thread(_knowing, call["tool_name"], workspace)
    toolbox, blobs = read_only_toolbox(registry, workspace, database), FileBlobs(blob_dir(database))
    return await describe_question(_question(view), call, rows, toolbox, blobs, scope)


def _knowing(tool: str, workspace: Path) -> ToolRegistry:
    """Tools with the call's own, which may be a plug-in's; where that cannot be had now, ours still look."""
    ours = default_registry(workspace)
    if tool not in ours and not tool.startswith(MCP_PREFIX):
        with contextlib.suppress(ConfigError, StorageError):
            return full_registry(workspace, settings_at(workspace))[0]
    return ours


def _name(view: CallView, shared: frozenset[str]) -> str:
    call_id: str = view.record["call_id"]
    return f"{view.thread_id}:{call_id}" if call_id in shared else call_id


def _question(view: CallView) -> Question:
    call = view.record
    return Question(
        "recovery", call["call_id"], call.get("attempt", 1), call.get("args_digest", ""), call.get("reason", "")
    )
