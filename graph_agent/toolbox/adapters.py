"""The session's ports in the narrow shapes that tools know."""

import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, assert_never

from graph_agent.config.scrub import Scrub
from graph_agent.errors import StorageError
from graph_agent.events import ProgressKind
from graph_agent.ports import Blobs
from tools.base import (
    BytesFetched,
    FilesSearched,
    McpProgress,
    Progress,
    ShellOutput,
    SubAgentStep,
    ToolContext,
)

__all__ = ["RecordProcess", "RecordedProcesses", "StoredBlobs", "Told", "progress_in_words"]

RecordProcess = Callable[[str, str, int, int, str], Awaitable[None]]
"""Thread, call, attempt, process group, start time; durable when it returns."""


class StoredBlobs:
    """Blobs that fail as tools expect it: absence is a LookupError, trouble with the disk an OSError."""

    def __init__(self, blobs: Blobs, scrub: Scrub | None = None) -> None:
        self._blobs = blobs
        self._scrub = scrub or Scrub()

    def put(self, data: bytes) -> str:
        """See `tools.base.BlobStore`; secrets are kept out."""
        try:
            return self._blobs.put(self._scrub.data(data))
        except StorageError as error:
            raise OSError(str(error)) from error

    def get(self, reference: str) -> bytes:
        """See `tools.base.BlobStore`."""
        try:
            return self._blobs.get(reference)
        except StorageError as error:
            raise LookupError(str(error)) from error

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """See `tools.base.BlobStore`."""
        return self._blobs.spool(thread_id, call_id, attempt)


class RecordedProcesses:
    """The process ledger over the journal's function."""

    def __init__(self, record_process: RecordProcess) -> None:
        self._record_process = record_process

    async def record(self, context: ToolContext, group: int, start_time: str) -> None:
        """See `tools.base.ProcessLedger`."""
        await self._record_process(context.thread_id, context.call_id, context.attempt, group, start_time)


class Told(NamedTuple):
    """Progress as the event about a running call carries it."""

    kind: ProgressKind
    text: str
    """In words, what the numbers say included."""
    done: float | None = None
    total: float | None = None


def progress_in_words(progress: Progress) -> Told:
    """What is told of it, in words and where there are any in numbers."""
    match progress:
        case ShellOutput(text):
            return Told("shell_output", text)
        case BytesFetched(done, total):
            words = f"{done} of {total} bytes{_percent(done, total)}" if total else f"{done} bytes"
            return Told("bytes_fetched", words, done, total or None)
        case FilesSearched(count):
            return Told("files_searched", f"{count} files", count)
        case McpProgress(done, total, message):
            done, total = _finite(done) or 0, _finite(total)
            counted = f"{done:g} of {total:g}{_percent(done, total)}" if total else f"{done:g}"
            words = f"{message}  {counted}" if message and total else message or counted
            return Told("mcp_progress", words, done, total)
        case SubAgentStep(step, text):
            return Told("sub_agent_step", f"step {step}: {text}" if step else text, step or None)
        case _:
            assert_never(progress)


def _percent(done: float, total: float) -> str:
    return f" ({100 * done / total:.0f} %)" if 0 <= done <= total else ""


def _finite(number: float | None) -> float | None:
    """A server may tell what is no number; JSON has no word for it."""
    return number if number is not None and math.isfinite(number) else None
