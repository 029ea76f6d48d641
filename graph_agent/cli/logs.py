"""The private log file: tracebacks and warnings of libraries go there, never to the terminal."""

import logging
import os
import time
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from graph_agent.config.paths import data_dir
from graph_agent.config.private import make_private_folder

__all__ = ["debugged", "log_privately", "log_traceback"]

_LIMIT_BYTES = 1_000_000


def log_privately() -> None:
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


def debugged(failure: BaseException) -> str:
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
        from graph_agent.app.secrets import scrub_here

        return scrub_here()(super().format(record))


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
