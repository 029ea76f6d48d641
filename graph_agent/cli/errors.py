"""The one place where what went wrong becomes a message on stderr and an exit code.

Knows the exception tree and nothing of the commands it guards.

Which exit code a rest of the graph ends with.
"""

import atexit
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO

from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.render.escape import escape
from graph_agent.errors import AgentError

if TYPE_CHECKING:
    from graph_agent.session.turn_result import TurnResult, TurnStatus


__all__ = ["exit_code_of", "run_guarded"]

_FAILED = 1
_INTERRUPTED = 130


def run_guarded(command: Callable[[], object]) -> int:
    """Run a command to its exit code, whatever it raises."""
    _fill_closed_streams()
    left_by: list[int] = []

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        left_by.append(128 + number)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _flushed(_run(command, left_by))
    _keep(code)
    return code


def _run(command: Callable[[], object], left_by: Sequence[int]) -> int:
    try:
        command()
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else _FAILED * (leaving.code is not None)
    except AgentError as failure:
        _tell(escape(str(failure), multiline=True))
        _tell_debugged(failure)
        return failure.exit_code
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        return _FAILED
    except Exception as bug:  # noqa: BLE001 - the boundary of the command line: a user never sees a traceback
        # After a signal, others made an error of their own of it: a module that was being loaded, for one.
        return left_by[0] if left_by else _fault(bug)
    return 0


def _fault(bug: Exception) -> int:
    if isinstance(bug, OSError) and bug.errno == errno.ENOSPC:
        _tell_full()
    else:
        _tell_bug(bug)
    return _FAILED


def _fill_closed_streams() -> None:
    """Put nothing in the place of a standard stream the program was started without.

    Else the next file that is opened, the database perhaps, takes its number, and the streams are None.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number and not _is_open(number):
                os.dup2(nothing, number)
            setattr(sys, name, os.fdopen(nothing, mode))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _tell_bug(bug: Exception) -> None:
    from graph_agent.app.toolset import redactor
    from graph_agent.cli.startup import log_traceback

    path = log_traceback(bug)
    where = f"the details are in {path}" if path else "the details could not be written to the log file"
    said = redactor()(str(bug))
    _tell(escape(f"unexpected {type(bug).__name__}: {said}; this is a fault of graph-agent, {where}"))


def _tell_full() -> None:
    """Where it is the output itself that takes no more, its last flush tells that."""
    try:
        sys.stdout.flush()
    except OSError:
        return
    _tell(
        "there is no space left on the disk, or where the output goes: make room; "
        "`graph-agent calls` shows what was done"
    )


def _tell_debugged(failure: AgentError) -> None:
    if os.environ.get("GRAPH_AGENT_DEBUG"):
        from graph_agent.cli.startup import log_debug_traceback

        _tell(escape(log_debug_traceback(failure)))


def _tell(safe: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"graph-agent: {safe}\n")


def _flushed(code: int) -> int:
    """Flush the streams now: one that takes no more must not become a complaint while Python shuts down."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _drop(sys.stdout)
        code = code or _FAILED
    except (OSError, ValueError) as failure:
        _tell(escape(f"the output could not be written: {failure}"))
        _drop(sys.stdout)
        code = code or _FAILED
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _drop(sys.stderr)
    return code


def _drop(stream: TextIO) -> None:
    """Let what the stream still holds go nowhere."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _keep(code: int) -> None:
    """From here on all is done and told: a signal ends the process with this very code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os._exit(code))
    # Python takes its handlers away last of all, and what is ignored stays ignored.
    atexit.register(_ignore_signals)


def _ignore_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


_BY_STATUS: "dict[TurnStatus, ExitCode]" = {
    "done": ExitCode.DONE,
    "awaiting_approval": ExitCode.APPROVALS_PENDING,
    "interrupted": ExitCode.RECOVERY_PENDING,
    "limit": ExitCode.LIMIT,
    "model_error": ExitCode.MODEL,
    "held": ExitCode.HELD,
    "stopped": ExitCode.INTERRUPTED,
    "resumable": ExitCode.FAILED,
    "failed": ExitCode.FAILED,
}


def exit_code_of(rest: "TurnResult") -> ExitCode:
    """The code for a rest; with questions of both kinds open, recovery wins."""
    if any(item.question.kind == "recovery" for item in rest.questions):
        return ExitCode.RECOVERY_PENDING
    if rest.unmet:
        return ExitCode.FAILED
    return ExitCode.APPROVALS_PENDING if rest.questions else _BY_STATUS[rest.status]
