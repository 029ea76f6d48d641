"""What can be found out about an interrupted call: its output, its effect, and the processes it left running.

Processes are identified by what the journal recorded. Those from before a reboot, and those that nothing ties to
the call, are neither shown nor touched.
"""

import asyncio
import signal
import time
from collections.abc import Sequence

from graph_agent.calls import ToolCallInfo
from graph_agent.config.paths import own_command
from graph_agent.ports import Blobs, JournalRow, Question, Scope, Toolbox
from graph_agent.ports.background import boot_id
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.toolbox.tool_context import Process, ProcessTraces, find_processes, recorded_traces, send_signal

__all__ = [
    "describe_question",
    "end_running",
    "explain_left_running",
    "explain_refused_retry",
    "process_traces",
    "running_pids",
]

_GRACE_S = 2.0
"""For each of SIGTERM and SIGKILL."""
_PAUSE_S = 0.02


async def describe_question(
    question: Question,
    call: ToolCallInfo,
    rows: Sequence[JournalRow],
    toolbox: Toolbox,
    blobs: Blobs,
    scope: Scope,
) -> OpenQuestion:
    """The question with its call and, for one that may have started, its output, effect and running processes."""
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
        processes=running_pids(process_traces(rows, scope.thread_id, blobs)),
    )


def process_traces(rows: Sequence[JournalRow], thread_id: str, blobs: Blobs) -> tuple[ProcessTraces, ...]:
    """What identifies the processes of all attempts of a call, as far as they can still run."""
    since_boot = [row for row in rows if row.extra.get("boot_id") == boot_id()]
    return tuple(traces for row in since_boot if (traces := recorded_traces(row, thread_id, blobs)) is not None)


def running_pids(traces: Sequence[ProcessTraces]) -> tuple[int, ...]:
    """The pids of the processes that still run."""
    return tuple(process.pid for process in _running(traces))


async def end_running(traces: Sequence[ProcessTraces]) -> tuple[int, ...]:
    """Terminate the processes, and kill those that do not end in time; returns the pids of the survivors."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in _running(traces):
            send_signal(process, number)
        deadline = time.monotonic() + _GRACE_S
        while _running(traces) and time.monotonic() < deadline:  # noqa: ASYNC110 - the kernel sets no event
            await asyncio.sleep(_PAUSE_S)
    return running_pids(traces)


def explain_refused_retry(call_id: str, pids: Sequence[int]) -> str:
    """Why a call cannot be retried yet."""
    return (
        f"Call {call_id} cannot be retried while processes of its last attempt are running "
        f"(pid {', '.join(map(str, pids))}). Wait for them, or end them: "
        f"`{own_command()} recover --retry {call_id} --end-processes`."
    )


def explain_left_running(call_id: str, pids: Sequence[int]) -> str:
    """That processes of a resolved call are still running."""
    return (
        f"Processes of call {call_id} are still running (pid {', '.join(map(str, pids))}). "
        f"End them with: kill {' '.join(map(str, pids))}"
    )


def _running(traces: Sequence[ProcessTraces]) -> list[Process]:
    return sorted({process for one in traces for process in find_processes(one)})
