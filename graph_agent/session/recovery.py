"""What can be found out about a call that was broken off, to help whoever decides. Finds, never decides.

Loads no graph and no model: the commands that answer from outside look through the same eyes.

What is left running of a command whose process of ours died: found, and ended when a person wants it.

Goes by what the journal recorded. What ran before the machine was started anew is nobody's any more, and a process
of which nothing ties it to the call is neither shown nor touched.
"""

import asyncio
import signal
import time
from collections.abc import Sequence

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Blobs, JournalRow, Question, Scope, Toolbox
from graph_agent.ports.background import boot_id
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.toolbox.tool_context import Process, ProcessTraces, find_processes, recorded_traces, send_signal

__all__ = ["describe_question", "end", "goes_on", "living", "process_traces", "still_running"]

_TERM_GRACE_S = 2.0
_KILL_GRACE_S = 2.0
_PAUSE_S = 0.02


def process_traces(rows: Sequence[JournalRow], thread_id: str, blobs: Blobs) -> tuple[ProcessTraces, ...]:
    """What the processes of all attempts of a call are known by, as far as they can still live."""
    here = [row for row in rows if row.extra.get("boot_id") == boot_id()]
    return tuple(traces for row in here if (traces := recorded_traces(row, thread_id, blobs)) is not None)


def living(left: Sequence[ProcessTraces]) -> tuple[int, ...]:
    """The living ones, by pid."""
    return tuple(process.pid for process in _living(left))


async def end(left: Sequence[ProcessTraces]) -> tuple[int, ...]:
    """Ask them to end, kill what has not ended after a short grace; returns what lives all the same."""
    await _signal(left, signal.SIGTERM, _TERM_GRACE_S)
    await _signal(left, signal.SIGKILL, _KILL_GRACE_S)
    return living(left)


def still_running(call_id: str, pids: Sequence[int]) -> str:
    """Why a call is not tried again yet, in words."""
    named = ", ".join(map(str, pids))
    return (
        f"call {call_id} is not tried again while processes of its last attempt run (pid {named}); "
        f"wait for them, or end them first: `graph-agent recover --retry {call_id} --end-processes`"
    )


def goes_on(call_id: str, pids: Sequence[int]) -> str:
    """That a call is settled and what it started runs on all the same, in words."""
    named = " ".join(map(str, pids))
    return f"what call {call_id} started still runs (pid {', '.join(map(str, pids))}); end it with: kill {named}"


async def _signal(left: Sequence[ProcessTraces], number: signal.Signals, grace_s: float) -> None:
    for process in _living(left):
        send_signal(process, number)
    deadline = time.monotonic() + grace_s
    while _living(left) and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel sets no event
        await asyncio.sleep(_PAUSE_S)


def _living(left: Sequence[ProcessTraces]) -> list[Process]:
    return sorted({process for traces in left for process in find_processes(traces)})


async def describe_question(
    question: Question,
    call: ToolCallInfo,
    rows: Sequence[JournalRow],
    toolbox: Toolbox,
    blobs: Blobs,
    scope: Scope,
) -> OpenQuestion:
    """The question with its record and, for a call that may have begun, what it wrote, did, and left running."""
    begun = [row for row in rows if row.may_have_started]
    if question.kind == "approval" or not begun:
        return OpenQuestion(question, call)
    finding = await toolbox.reconcile(call, begun[-1].intent, scope)
    return OpenQuestion(
        question,
        call,
        partial_output=await toolbox.partial_output(call, begun[-1].attempt, scope),
        finding=finding.detail,
        finding_verdict=finding.verdict,
        processes=living(process_traces(rows, scope.thread_id, blobs)),
    )
