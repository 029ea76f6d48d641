"""Process-wide setup: the result of a run that is killed while loading, garbage collection, stdout.

And what is answered before the parser is loaded: the version, and the lists that are printed most often.

Imports nothing that is slow: it runs before everything else.
"""

import contextlib
import gc
import json
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, NoReturn

from graph_agent.cli.arguments import expand_arguments

__all__ = [
    "find_listing",
    "forbid_reading_memory",
    "parse_run_options",
    "print_result_on_signal",
    "print_version",
    "reduce_gc",
    "reserve_stdout",
    "restore_gc",
    "restore_signals",
    "result_on_signal",
]

_STDOUT, _STDERR = 1, 2

_SET_DUMPABLE = 4
_CALL_MARK = "GRAPH_AGENT_CALL"
"""Variable in the environment of each command, see `tools.shell_ops.process`."""

_LOADING_OBJECTS = 1_000_000
"""More objects than loading makes: it makes hardly any garbage, and looking for it takes an eighth of the time."""

_DEFAULT_THRESHOLD = gc.get_threshold()

_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "requests")
_NO_USAGE = {**dict.fromkeys(_TOKENS, 0), "estimated": False, "cost": 0.0, "currency": None}

_previous_handlers: dict[int, Any] = {}
"""The signal handlers that `print_result_on_signal` replaced."""


def parse_run_options(arguments: Sequence[str]) -> tuple[str, str | None]:
    """Output format and thread of a `run` command line, before the real parser is loaded."""
    arguments = expand_arguments(arguments)
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if next((word for word in options if not word.startswith("-")), "") != "run":
        return "text", None
    values = dict(zip(options, [*options[1:], ""], strict=True)) | {
        name: value for name, is_joined, value in (word.partition("=") for word in options) if is_joined
    }
    output = values.get("--output", "")
    return output if output in ("json", "stream-json") else "text", values.get("--thread")


def find_listing(arguments: Sequence[str]) -> Callable[[], None] | None:
    """What a frequent read-only command does: loading the parser would take as long as the command itself.

    None if it is another command, or has options that only the parser knows.
    """
    words, database, as_json = list[str](), None, False
    remaining = iter(arguments)
    for word in remaining:
        if word == "--json":
            as_json = True
        elif word == "--db":
            database = next(remaining, "-")
            if database.startswith("-"):
                return None
        elif word.startswith("-"):
            return None
        else:
            words.append(word)
    match words:
        case ["threads" | "approvals", "list"] | ["calls" | "inspect"] | ["calls" | "inspect", _]:
            return partial(_print_listing, words, database, as_json=as_json)
    return None


def _print_listing(words: Sequence[str], db: str | None, *, as_json: bool) -> None:
    # Each imports only what it needs.
    from graph_agent.config.paths import database_path

    database = database_path(os.environ, db)
    match words:
        case ["threads", _]:
            from graph_agent.cli.views.threads import list_threads

            list_threads(database, as_json=as_json)
        case ["approvals", _]:
            from graph_agent.cli.views.approvals import list_approvals

            list_approvals(database, as_json=as_json)
        case ["calls", *target]:
            from graph_agent.cli.views.calls import list_calls

            list_calls(database, target[0] if target else None, status=None, tool=None, as_json=as_json)
        case [_, *target]:
            from graph_agent.cli.views.inspection import inspect_state

            workspace = None if db else os.getcwd()  # noqa: PTH109 - pathlib is not loaded yet
            inspect_state(database, "".join(target), workspace, path=None, as_json=as_json, full=False)


@contextlib.contextmanager
def result_on_signal(output: str, thread_id: str | None) -> Iterator[None]:
    """`print_result_on_signal` within the block, unless the block itself restores the handlers."""
    print_result_on_signal(output, thread_id)
    try:
        yield
    finally:
        restore_signals()


def print_result_on_signal(output: str, thread_id: str | None) -> None:
    """From now on, SIGTERM, SIGHUP and SIGINT print the JSON result of a stopped run and end the process."""
    if output == "text":
        return
    result = {
        **({"seq": 1, "type": "result"} if output == "stream-json" else {}),
        "status": "stopped",
        "thread_id": thread_id,
        "checkpoint_id": None,
        "answer": "",
        "pending_approvals": [],
        "interrupted_calls": [],
        "usage": _NO_USAGE,
        "error": "ended by a signal",
    }
    line = f"{json.dumps(result, ensure_ascii=False)}\n".encode(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        previous = signal.signal(number, _PrintAndExit(line))
        if not isinstance(previous, _PrintAndExit):
            _previous_handlers[number] = previous


def restore_signals() -> None:
    """Restore the previous handlers, except where another one was set since."""
    for number, previous in _previous_handlers.items():
        if isinstance(signal.getsignal(number), _PrintAndExit):
            signal.signal(number, previous)


@dataclass(frozen=True, slots=True)
class _PrintAndExit:
    """Signal handler that ends the process with one line on stdout."""

    line: bytes

    def __call__(self, number: int, _frame: FrameType | None) -> NoReturn:
        with contextlib.suppress(OSError):
            os.write(_STDOUT, self.line)
        os._exit(128 + number)


def forbid_reading_memory() -> None:
    """Close this process's environment and memory, which may hold keys, to other processes of its user.

    Root can read them anyway, and what this process starts is readable again. An agent that a command of another
    agent started stays as it is: that one must find it by the mark in its environment, which holds no keys.
    """
    if sys.platform == "linux" and _CALL_MARK not in os.environ:
        import ctypes  # only Linux needs it

        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def reduce_gc() -> None:
    """Collect hardly any garbage while the program loads; call at its start."""
    gc.set_threshold(_LOADING_OBJECTS, *_DEFAULT_THRESHOLD[1:])


def restore_gc() -> None:
    """Exempt all that is loaded from collection, and collect as usual from now on. Only the first call counts."""
    if gc.get_threshold() != _DEFAULT_THRESHOLD:
        gc.freeze()
        gc.set_threshold(*_DEFAULT_THRESHOLD)


def reserve_stdout() -> Callable[[str], None]:
    """Redirect what libraries print to stderr; returns the only function that writes to stdout, and flushes it.

    This holds for the rest of the process: a plug-in that prints at exit must not spoil the JSON.
    If `sys.stdout` is not the process's own stdout, nothing is redirected.
    """
    stdout = sys.stdout
    try:
        is_process_stdout = stdout.fileno() == _STDOUT
    except (OSError, ValueError):
        is_process_stdout = False
    if not is_process_stdout:
        return lambda text: print(text, end="", file=stdout, flush=True)
    stdout.flush()
    descriptor = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)

    def write(text: str) -> None:
        remaining = memoryview(text.encode(stdout.encoding, stdout.errors or "strict"))
        while remaining:
            try:
                remaining = remaining[os.write(descriptor, remaining) :]
            except BlockingIOError:
                select.select([], [descriptor], [])

    return write


def print_version() -> int:
    """Print the version on stdout; returns the exit code."""
    from importlib.metadata import version  # slow to load, and no other command needs it

    sys.stdout.write(f"graph-agent {version('graph-agent')}\n")
    return 0
