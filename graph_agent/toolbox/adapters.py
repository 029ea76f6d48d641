"""The session's ports in the narrow shapes that tools know."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from graph_agent.config.scrub import Scrub
from graph_agent.errors import StorageError
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

__all__ = ["RecordProcess", "RecordedProcesses", "StoredBlobs", "progress_in_words"]

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


def progress_in_words(progress: Progress) -> tuple[str, str]:
    """Kind and text, as the event about a running call carries them."""
    match progress:
        case ShellOutput(text):
            return "shell_output", text
        case BytesFetched(done, total):
            return "bytes_fetched", f"{done} of {total} bytes" if total else f"{done} bytes"
        case FilesSearched(count):
            return "files_searched", f"{count} files"
        case McpProgress(done, total, message):
            return "message", message or (f"{done:g} of {total:g}" if total else f"{done:g}")
        case SubAgentStep(step, text):
            return "message", f"step {step}: {text}" if step else text
