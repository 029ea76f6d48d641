"""The log file, which only its owner can read and in which known secrets are redacted.

A module of its own: most commands log nothing, and `logging` loads for as long as the command line itself.
"""

import logging
import os
import time
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from graph_agent.config.paths import data_dir, make_private_folder

__all__ = ["log_debug_traceback", "log_to_file", "log_traceback"]

_MAX_LOG_BYTES = 1_000_000


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
        from graph_agent.config.redaction import redactor

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
