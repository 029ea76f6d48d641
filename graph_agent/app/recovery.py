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
from graph_agent.config.paths import own_command
from graph_agent.errors import AnswerRefused, ConfigError, QuestionChanged, StorageError, UnknownId
from graph_agent.inspect import CallView, Reader, StandingAnswer, Target
from graph_agent.ports import Answer, Clock, Question, Scope, SystemClock
from graph_agent.session.recovery import (
    describe_question,
    end_running,
    explain_refused_retry,
    process_traces,
    running_pids,
)
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.storage import open_blobs, open_database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.toolbox import MCP_PREFIX
from tools.registry import ToolRegistry

if TYPE_CHECKING:
    from graph_agent.calls import ToolCallInfo


__all__ = ["Decision", "Interrupted", "decide_calls", "interrupted_calls"]

_Kind = Literal["retry", "done", "cancel"]


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A call that waits for a recovery decision, or has one that its thread has not applied yet."""

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
    shown: Question | None = None
    """The question that the person was shown; None for whatever the call asks now."""


async def interrupted_calls(database: Path, thread: str | None) -> list[Interrupted]:
    """The interrupted calls of a thread, or of all, with what can be found out about each.

    Raises:
        UnknownId: there is no such thread, or several.
    """
    with read_database(database) as reader:
        shared = reader.shared_call_ids()
        found = [
            (
                view,
                Path(reader.thread(view.thread_id).workspace),
                reader.attempts(view.thread_id, view.record["call_id"]),
            )
            for view in _interrupted(reader, thread)
        ]
    calls: list[Interrupted] = []
    for view, workspace, attempts in found:
        call = cast("ToolCallInfo", dict(view.record))
        registry = await asyncio.to_thread(_registry_with, call["tool_name"], workspace)
        toolbox, blobs = read_only_toolbox(registry, workspace, database), open_blobs(database)
        scope = Scope(view.thread_id, "default", str(workspace))
        question = await describe_question(_question(view), call, attempts, toolbox, blobs, scope)
        name = f"{view.thread_id}:{call['call_id']}" if call["call_id"] in shared else call["call_id"]
        calls.append(Interrupted(name, view, question))
    return calls


def _registry_with(tool: str, workspace: Path) -> ToolRegistry:
    """Tools with the call's own, which may be a plug-in's; if that is not available, the built-in ones."""
    built_in = default_registry(workspace)
    if tool not in built_in and not tool.startswith(MCP_PREFIX):
        with contextlib.suppress(ConfigError, StorageError):
            return full_registry(workspace, settings_at(workspace))[0]
    return built_in


def _question(view: CallView) -> Question:
    call = view.record
    return Question(
        "recovery", call["call_id"], call.get("attempt", 1), call.get("args_digest", ""), call.get("reason", "")
    )


def _interrupted(reader: Reader, thread: str | None, *, with_retries: bool = False) -> list[CallView]:
    wanted = None if thread is None else _family(reader, thread)
    views = reader.interrupted(with_retries=with_retries)
    return [view for view in views if wanted is None or view.thread_id in wanted]


def _family(reader: Reader, thread: str) -> list[str]:
    """A thread and the sub-agents below it: their interrupted calls are decided with it."""
    own = reader.resolve(thread, kinds=("thread", "checkpoint")).thread_id
    return [own, *(one.thread_id for one in reader.family(own) if one.thread_id != own)]


async def decide_calls(
    database: Path,
    thread: str | None,
    decisions: Sequence[Decision],
    *,
    by: str,
    end_processes: bool = False,
    clock: Clock | None = None,
) -> list[RecordedAnswer]:
    """Record decisions; of each call the first one wins. Nothing is recorded if one of them cannot be.

    Raises:
        UnknownId: an id names nothing, or several calls.
        AnswerRefused: a call is not interrupted, is decided on twice, or is to be retried while it still runs.
        QuestionChanged: a call asks something else than was shown.
    """
    with read_database(database) as reader:
        chosen = _chosen_calls(reader, thread, decisions)
        attempts = {key: reader.attempts(*key) for key in chosen}
    for key, (view, decision) in chosen.items():
        if decision.shown is not None and not _question(view).accepts_answers_to(decision.shown):
            raise QuestionChanged(view.record["call_id"])
        traces = process_traces(attempts[key], view.thread_id, open_blobs(database))
        if end_processes and view.is_interrupted:
            await end_running(traces)
        if decision.kind == "retry" and view.is_interrupted and (running := running_pids(traces)):
            advice = "" if end_processes else " (--end-processes ends them)"
            raise AnswerRefused(f"{explain_refused_retry(view.record['call_id'], running)}{advice}")
    now = (clock or SystemClock()).now()
    recorded: list[RecordedAnswer] = []
    async with await open_database(database) as opened:
        store = SqliteDecisions(opened)
        for (thread_id, call_id), (view, decision) in chosen.items():
            standing: Answer | StandingAnswer | None = _applied_decision(view)
            accepted = False
            if standing is None:
                answer = Answer(decision.kind, by, now, reason=decision.result)
                standing = await store.insert_if_asked(thread_id, _question(view), answer)
                accepted = standing == answer
            recorded.append(RecordedAnswer(call_id, thread_id, standing.kind, accepted, standing.by, standing.at))
    return recorded


def _chosen_calls(
    reader: Reader, thread: str | None, decisions: Sequence[Decision]
) -> Mapping[tuple[str, str], tuple[CallView, Decision]]:
    chosen: dict[tuple[str, str], tuple[CallView, Decision]] = {}
    for decision in sorted(decisions, key=lambda one: one.call == "all"):
        if decision.call == "all":
            for view in _interrupted(reader, thread, with_retries=True):
                if view.answer is None:
                    chosen.setdefault((view.thread_id, view.record["call_id"]), (view, decision))
            continue
        view = _named_call(reader, thread, decision.call)
        key = view.thread_id, view.record["call_id"]
        if key in chosen:
            raise AnswerRefused(f"Two options decide about call {key[1]!r}. Remove one of them.")
        chosen[key] = (view, decision)
    return chosen


def _named_call(reader: Reader, thread: str | None, text: str) -> CallView:
    target = _resolve_call(reader, thread, text)
    view = reader.call(target.thread_id, target.id)
    status = view.record["status"]
    if status == "interrupted" or _applied_decision(view) is not None:
        return view
    advice = f"List interrupted calls with `{own_command()} recover`."
    if status == "executing":
        advice = "The process that holds its thread is running it."
    elif status == "awaiting_approval":
        advice = f"Answer it with `{own_command()} approvals`."
    raise AnswerRefused(f"Call {target.id!r} needs no recovery decision; its status is {status}. {advice}")


def _resolve_call(reader: Reader, thread: str | None, text: str) -> Target:
    if thread is None or ":" in text:
        return reader.resolve(text, kinds=("call",))
    own, *below = _family(reader, thread)
    for child in below:
        with contextlib.suppress(UnknownId):
            return reader.resolve(f"{child}:{text}", kinds=("call",))
    return reader.resolve(f"{own}:{text}", kinds=("call",))


def _applied_decision(view: CallView) -> StandingAnswer | None:
    """The decision that its thread has applied already; None for a call that is interrupted or never was."""
    answer = view.answer
    if view.record["status"] == "interrupted" or answer is None or answer.kind not in get_args(_Kind):
        return None
    return answer
