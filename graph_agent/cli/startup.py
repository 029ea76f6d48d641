"""Process-wide setup: the result line of a run that is killed while loading, garbage collection, log file, stdout.

Imports nothing of the program that is slow: it runs before everything else.
"""

import contextlib
import gc
import json
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from graph_agent.config.paths import data_dir, make_private_folder

__all__ = [
    "log_debug_traceback",
    "log_to_file",
    "log_traceback",
    "parse_run_options",
    "print_result_on_signal",
    "reduce_gc",
    "reserve_stdout",
    "restore_gc",
    "restore_signals",
    "result_on_signal",
]

_STDOUT, _STDERR = 1, 2
_MAX_LOG_BYTES = 1_000_000

_LOADING_OBJECTS = 1_000_000
"""More objects than loading makes: it makes hardly any garbage, and looking for it takes an eighth of the time."""

_DEFAULT_THRESHOLD = gc.get_threshold()

_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "requests")
_NO_USAGE = {**dict.fromkeys(_TOKENS, 0), "estimated": False, "cost": 0.0, "currency": None}

_previous_handlers: dict[int, Any] = {}
"""The signal handlers that `print_result_on_signal` replaced."""


def parse_run_options(arguments: Sequence[str]) -> tuple[str, str | None]:
    """Output format and thread of a `run` command line, before the real parser is loaded."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if next((word for word in options if not word.startswith("-")), "") != "run":
        return "text", None
    values = dict(zip(options, [*options[1:], ""], strict=True)) | {
        name: value for name, is_joined, value in (word.partition("=") for word in options) if is_joined
    }
    output = values.get("--output", "")
    return output if output in ("json", "stream-json") else "text", values.get("--thread")


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


def reduce_gc() -> None:
    """Collect hardly any garbage while the program loads; call at its start."""
    gc.set_threshold(_LOADING_OBJECTS, *_DEFAULT_THRESHOLD[1:])


def restore_gc() -> None:
    """Exempt all that is loaded from collection, and collect as usual from now on. Only the first call counts."""
    if gc.get_threshold() != _DEFAULT_THRESHOLD:
        gc.freeze()
        gc.set_threshold(*_DEFAULT_THRESHOLD)


def log_to_file() -> None:
    """Send log records and warnings, also of libraries, to the log file; with `--debug`, all levels."""
    if os.environ.get("GRAPH_AGENT_DEBUG"):
        logging.getLogger().setLevel(logging.DEBUG)
    logging.getLogger().addHandler(_PrivateLogFile(_log_file()))
    logging.captureWarnings(capture=True)


def log_traceback(error: BaseException) -> Path | None:
    """Write an unexpected error with its traceback to the log file; None if that is impossible."""
    path = _log_file()
    details = (type(error), error, error.__traceback__)
    record = logging.LogRecord("graph_agent", logging.ERROR, __file__, 0, f"{type(error).__name__}", None, details)
    try:
        handler = _PrivateLogFile(path)
        handler.stream = handler._open()  # noqa: SLF001 - opened here to catch a failure
        handler.emit(record)
        handler.close()
    except OSError:
        return None
    return None if handler.has_failed else path


def log_debug_traceback(error: BaseException) -> str:
    """With `--debug`, log the traceback of an expected error and return a note about it; else an empty text."""
    if not os.environ.get("GRAPH_AGENT_DEBUG"):
        return ""
    path = log_traceback(error)
    return f"Details: {path}" if path else "The details could not be written to the log file."


def _log_file() -> Path:
    return data_dir(os.environ) / "logs" / "graph-agent.log"


class _RedactingFormatter(logging.Formatter):
    """Redacts known secrets in messages and tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        # Imported with the first record: usually there is none.
        from graph_agent.app.toolset import redactor

        return redactor()(super().format(record))


class _PrivateLogFile(RotatingFileHandler):
    """A log file that only its owner can read, opened at the first record and rotated at about a megabyte."""

    has_failed = False
    """Whether a record was lost, e.g. on a full disk."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=_MAX_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)
        formatter = _RedactingFormatter("%(asctime)s %(process)d %(name)s %(levelname)s %(message)s")
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the name is the framework's
        """Do not print a traceback if a record cannot be written."""
        self.has_failed = True

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return super()._open()


def reserve_stdout() -> Callable[[str], None]:
    """Redirect what libraries print to stderr; returns the only function that writes to stdout, and flushes it.

    This holds for the rest of the process: a plug-in that prints at exit must not spoil the JSON.
    If `sys.stdout` is not the process's own stdout, nothing is redirected.
    """
    stdout = sys.stdout
    if not _is_process_stdout(stdout):
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


def _is_process_stdout(stream: TextIO) -> bool:
    try:
        return stream.fileno() == _STDOUT
    except (OSError, ValueError):
        return False
