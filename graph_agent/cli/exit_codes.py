"""The exit codes of the command line, and how what a command raises becomes a message on stderr and one of them."""

import atexit
import contextlib
import errno
import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from enum import IntEnum
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO

from graph_agent.errors import AgentError
from graph_agent.wording import escape

if TYPE_CHECKING:
    from graph_agent.session.turn_result import TurnResult, TurnStatus


__all__ = ["MEANINGS", "ExitCode", "exit_code_of", "print_early_failure", "run_guarded"]


class ExitCode(IntEnum):
    """The exit codes that scripts can rely on."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    APPROVALS_PENDING = 3
    RECOVERY_PENDING = 4
    LIMIT = 5
    MODEL = 6
    HELD = 7
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed",
    ExitCode.USAGE: "wrong usage or settings",
    ExitCode.APPROVALS_PENDING: "paused: approvals are pending",
    ExitCode.RECOVERY_PENDING: "paused: interrupted calls need a decision",
    ExitCode.LIMIT: "a limit was reached",
    ExitCode.MODEL: "the model or its provider failed, or the answer does not fit --json-schema",
    ExitCode.HELD: "another process holds the thread",
    ExitCode.HANGUP: "ended by SIGHUP",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C",
    ExitCode.TERMINATED: "ended by SIGTERM",
}
"""The meaning of each, as help and docs print it."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_EXIT_CODES: "dict[TurnStatus, ExitCode]" = {
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


def exit_code_of(result: "TurnResult") -> ExitCode:
    """The exit code of a turn's result; if both kinds of questions are open, the one for recovery."""
    if any(item.question.kind == "recovery" for item in result.questions):
        return ExitCode.RECOVERY_PENDING
    if result.unmet:
        return ExitCode.FAILED
    return ExitCode.APPROVALS_PENDING if result.questions else _EXIT_CODES[result.status]


def run_guarded(command: Callable[[], object]) -> int:
    """Run a command; returns its exit code, whatever it raises."""
    _open_missing_streams()
    exit_codes_of_signals: list[int] = []

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        exit_codes_of_signals.append(128 + number)
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _flush(_run(command, exit_codes_of_signals))
    # Everything is done and printed: from here on a signal ends the process with this very code.
    for number in _SIGNALS:
        signal.signal(number, lambda *_: os._exit(code))
    # Python removes its handlers at the very end, but leaves ignored signals ignored.
    atexit.register(lambda: [signal.signal(number, signal.SIG_IGN) for number in _SIGNALS])
    return code


def _run(command: Callable[[], object], exit_codes_of_signals: list[int]) -> int:
    code: int = ExitCode.FAILED
    try:
        command()
        code = ExitCode.DONE
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else ExitCode.FAILED * (leaving.code is not None)
    except AgentError as failure:
        from graph_agent.config.paths import runnable_hints

        message = runnable_hints(str(failure))
        print_early_failure(message)
        _print(escape(message, multiline=True))
        if os.environ.get("GRAPH_AGENT_DEBUG"):
            from graph_agent.cli.log_file import log_debug_traceback

            _print(escape(log_debug_traceback(failure)))
        code = failure.exit_code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        pass
    except Exception as bug:  # noqa: BLE001 - the boundary of the command line: a user never sees a traceback
        if exit_codes_of_signals:  # A module that was being imported turned the signal's exit into its own error.
            code = exit_codes_of_signals[0]
        else:
            _print_unexpected(bug)
    return code


def print_early_failure(error: str) -> None:
    """Print the result object of a run that failed before it began, where `--output` asks for one."""
    arguments = sys.argv[1:]
    after = dict(itertools.pairwise(arguments))
    output = after.get("--output") or next((one[9:] for one in arguments if one.startswith("--output=")), "")
    if output not in ("json", "stream-json"):
        return
    from graph_agent.cli.headless.report import failure_report

    report = failure_report("failed", error, None)
    numbered = {"seq": 1, "type": "result"} if output == "stream-json" else {}
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.write(f"{json.dumps({**numbered, **report}, ensure_ascii=False)}\n")


def _print_unexpected(bug: Exception) -> None:
    if isinstance(bug, OSError) and bug.errno == errno.ENOSPC:
        # If stdout itself is full, its last flush reports that.
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            _print("No space left on the disk. Free some space; `graph-agent calls` shows what was done.")
        return
    from graph_agent.cli.log_file import log_traceback
    from graph_agent.config.redaction import redactor

    path = log_traceback(bug)
    details = f"Details: {path}" if path else "The details could not be written to the log file."
    message = redactor()(str(bug))
    _print(escape(f"Unexpected {type(bug).__name__}: {message}. This is a bug in graph-agent. {details}"))


def _print(safe: str) -> None:
    from graph_agent.cli.views.table import wrap_message

    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{wrap_message(f'graph-agent: {safe}')}\n")


def _open_missing_streams() -> None:
    """Open /dev/null for standard streams that the process was started without.

    Otherwise the next opened file, perhaps the database, would get their number, and the streams would be None.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                try:
                    os.fstat(number)
                except OSError:
                    os.dup2(null, number)
            setattr(sys, name, os.fdopen(null, mode))


def _flush(code: int) -> int:
    """Flush the streams now, so that a failure is no complaint at Python's shutdown; returns the exit code."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
        code = code or ExitCode.FAILED
    except (OSError, ValueError) as failure:
        _print(escape(f"Cannot write the output: {failure}"))
        _discard(sys.stdout)
        code = code or ExitCode.FAILED
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)
    return code


def _discard(stream: TextIO) -> None:
    """Send what the stream still buffers to /dev/null."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
