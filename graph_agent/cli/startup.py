"""A headless run that a signal ends before it has begun: its one object is printed all the same.

While modules are loaded nothing is at stake, so the process ends at once. Loads nothing itself.

When the search for cyclic garbage runs: not while the program loads, and later only in what came since.

Loading makes hundreds of thousands of objects and hardly any garbage. Looking through all of them again and again
takes an eighth of the time to the first request, and each full look later some 50 ms of a step.

The private log file: tracebacks and warnings of libraries go there, never to the terminal.

Standard output for one writer alone: what libraries and tools of others print there reaches stderr instead.

Knows nothing of what is written.
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

_before: dict[int, Any] = {}
"""What a signal meant before anybody wanted to be told of it: handlers are of the process, and so is this."""

_USED = {
    **dict.fromkeys(
        ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "requests"), 0
    ),
    "estimated": False,
    "cost": 0.0,
    "currency": None,
}


def parse_run_options(words: Sequence[str]) -> tuple[str, str | None]:
    """Format and thread of a headless run as they stand on the command line, before anything can read it whole."""
    options = words[: words.index("--")] if "--" in words else words
    if next((word for word in options if not word.startswith("-")), "") != "run":
        return "text", None
    named = dict(zip(options, [*options[1:], ""], strict=True)) | {
        name: value for name, is_joined, value in (word.partition("=") for word in options) if is_joined
    }
    output = named.get("--output", "")
    return output if output in ("json", "stream-json") else "text", named.get("--thread")


@dataclass(frozen=True, slots=True)
class _Ending:
    """Ends the process with one line on stdout."""

    line: bytes

    def __call__(self, number: int, _frame: FrameType | None) -> NoReturn:
        with contextlib.suppress(OSError):
            os.write(1, self.line)
        os._exit(128 + number)


def print_result_on_signal(output: str, thread_id: str | None) -> None:
    """From now on print the result of a run in this format where SIGTERM, SIGHUP or SIGINT end it."""
    if output == "text":
        return
    line = f"{json.dumps(_report(output, thread_id), ensure_ascii=False)}\n".encode(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        before = signal.signal(number, _Ending(line))
        if not isinstance(before, _Ending):
            _before[number] = before


def restore_signals() -> None:
    """Signals mean again what they meant before, unless somebody else has set them since."""
    for number, before in _before.items():
        if isinstance(signal.getsignal(number), _Ending):
            signal.signal(number, before)


@contextlib.contextmanager
def result_on_signal(output: str, thread_id: str | None) -> Iterator[None]:
    """The same within the block, unless it ended that itself."""
    print_result_on_signal(output, thread_id)
    try:
        yield
    finally:
        restore_signals()


def _report(output: str, thread_id: str | None) -> dict[str, object]:
    event = {"seq": 1, "type": "result"} if output == "stream-json" else {}
    return {
        **event,
        "status": "stopped",
        "thread_id": thread_id,
        "checkpoint_id": None,
        "answer": "",
        "pending_approvals": [],
        "interrupted_calls": [],
        "usage": _USED,
        "error": "ended by a signal",
    }


_LOADING_OBJECTS = 1_000_000
"""More than loading makes; a command that opens no thread, and reads a large database, is searched at this pace."""

_USUAL = gc.get_threshold()


def reduce_gc() -> None:
    """From the start of the program on."""
    gc.set_threshold(_LOADING_OBJECTS, *_USUAL[1:])


def restore_gc() -> None:
    """All is loaded: what there is stays for good. Not so a second time: then there is a thread that was closed."""
    if gc.get_threshold() != _USUAL:
        gc.freeze()
        gc.set_threshold(*_USUAL)


_LIMIT_BYTES = 1_000_000


def log_to_file() -> None:
    """Send what is logged or warned of, by us or by a library, to the log file instead of the terminal.

    All of it with `--debug`.
    """
    if os.environ.get("GRAPH_AGENT_DEBUG"):
        logging.getLogger().setLevel(logging.DEBUG)
    logging.getLogger().addHandler(_PrivateFile(_log_file()))
    logging.captureWarnings(capture=True)


def log_traceback(error: BaseException) -> Path | None:
    """Write an unexpected error down with its traceback; None when there is nowhere to write."""
    path = _log_file()
    record = logging.LogRecord(
        "graph_agent",
        logging.ERROR,
        __file__,
        0,
        f"{type(error).__name__}",
        None,
        (type(error), error, error.__traceback__),
    )
    try:
        handler = _PrivateFile(path)
        handler.stream = handler._open()  # noqa: SLF001 - the file is opened here so that a failure is ours to see
        handler.emit(record)
        handler.close()
    except OSError:
        return None
    return None if handler.has_failed else path


def log_debug_traceback(failure: BaseException) -> str:
    """With `--debug` writes the traceback of a failure down, and says where it is; empty without."""
    if not os.environ.get("GRAPH_AGENT_DEBUG"):
        return ""
    return f"its traceback is in {log_traceback(failure) or 'no file: the log cannot be written'}"


def _log_file() -> Path:
    return data_dir(os.environ) / "logs" / "graph-agent.log"


class _Scrubbed(logging.Formatter):
    """Whatever a library puts into a message or a traceback, no key gets into the file."""

    def format(self, record: logging.LogRecord) -> str:
        # What it takes to know the keys is loaded with the first record, of which there mostly is none.
        from graph_agent.app.toolset import redactor

        return redactor()(super().format(record))


class _PrivateFile(RotatingFileHandler):
    """Opened at the first record, readable by its owner alone, cut at about a megabyte."""

    has_failed = False
    """Whether a record was lost, on a full disk for one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, maxBytes=_LIMIT_BYTES, backupCount=1, encoding="utf-8", delay=True)
        formatter = _Scrubbed("%(asctime)s %(process)d %(name)s %(levelname)s %(message)s")
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the name is the framework's
        """A record that cannot be written is no reason to show a traceback on the terminal."""
        self.has_failed = True

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        make_private_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        return super()._open()


_STDOUT, _STDERR = 1, 2


def reserve_stdout() -> Callable[[str], None]:
    """From now on the only way to what stdout was; each text is out when the function returns.

    For the rest of the process, also after the caller is done: what a plug-in says at its exit would stand behind
    the one object that a program reads. Where stdout is not the process's own, nothing is taken from anybody.
    """
    given = sys.stdout
    if not _is_first(given):
        return lambda text: print(text, end="", file=given, flush=True)
    given.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)

    def write(text: str) -> None:
        left = memoryview(text.encode(given.encoding, given.errors or "strict"))
        while left:
            try:
                left = left[os.write(kept, left) :]
            except BlockingIOError:
                select.select([], [kept], [])

    return write


def _is_first(stream: TextIO) -> bool:
    try:
        return stream.fileno() == _STDOUT
    except (OSError, ValueError):
        return False
