"""What a tool may use while it runs: its `ToolContext` and the ports and values in it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tools.paths import PathRefused, ResolvedPath, resolve
from tools.result import ToolErrorType
from tools.sandbox.sandbox import Sandbox

__all__ = [
    "BlobStore",
    "BytesFetched",
    "FileStates",
    "FilesSearched",
    "HostPermission",
    "Limits",
    "McpProgress",
    "MemoryFileStates",
    "ProcessRecorder",
    "Progress",
    "ShellOutput",
    "SubAgentStep",
    "ToolContext",
    "allow_any_path",
]


@dataclass(frozen=True)
class ShellOutput:
    """New output of a running command, cleaned for display."""

    text: str


@dataclass(frozen=True)
class BytesFetched:
    """How much has been downloaded."""

    done: int
    total: int | None = None


@dataclass(frozen=True)
class FilesSearched:
    """How many files have been searched."""

    count: int


@dataclass(frozen=True)
class McpProgress:
    """Progress that an MCP server reported."""

    done: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True)
class SubAgentStep:
    """A step of a sub-agent."""

    step: int
    text: str = ""


Progress = ShellOutput | BytesFetched | FilesSearched | McpProgress | SubAgentStep


class BlobStore(Protocol):
    """Content-addressed bytes; references start with `blob:`."""

    def put(self, data: bytes) -> str:
        """Store the bytes and return their reference; OSError if the disk is full."""
        ...

    def get(self, reference: str) -> bytes:
        """The bytes of a reference; LookupError if it is unknown."""
        ...

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """Path of the private file for a running call's output; its folder exists."""
        ...


class FileStates(Protocol):
    """The SHA-256 of what a thread last read or wrote of each file, by resolved path."""

    async def get(self, thread_id: str, path: str) -> str | None: ...

    async def set(self, thread_id: str, path: str, sha256: str) -> None: ...


class ProcessRecorder(Protocol):
    """Records a process group before its command starts."""

    async def record(self, context: "ToolContext", group: int, start_time: str) -> None:
        """Durable when it returns; if it raises, the command never runs."""
        ...


class MemoryFileStates:
    """File states in memory: for tools used without a session."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, str], str] = {}

    async def get(self, thread_id: str, path: str) -> str | None:
        """See `FileStates`."""
        return self._digests.get((thread_id, path))

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        """See `FileStates`."""
        self._digests[thread_id, path] = sha256


@dataclass(frozen=True)
class Limits:
    """Limits for one call."""

    result_chars: int = 30_000
    """Longer results are stored and cut; a tool's own `max_result_chars` takes precedence."""
    message_chars: int = 200_000
    """For all results of one model message together, shared equally by its calls."""
    line_chars: int = 2_000
    read_lines: int = 2_000
    file_bytes: int = 64 * 1024 * 1024
    """Larger files are neither written nor recorded as read, and are read only in ranges."""
    scan_bytes: int = 1024 * 1024 * 1024
    """How far into a file a range may be."""
    spool_bytes: int = 64 * 1024 * 1024
    """A command that writes more is stopped."""
    shells: int = 8
    """Background shells a thread may have running."""
    look_s: float = 0.05
    """Time for listing the work tree before and after a command; if it runs out, the changes stay unknown."""


@dataclass(frozen=True)
class HostPermission:
    """What the user's rules say about a network host."""

    is_denied: bool = False
    may_follow: bool = False
    """A redirect may lead there without approval."""
    may_be_private: bool = False
    """It may be in a private network, or be this machine."""


def _no_host(_: str) -> HostPermission:
    return HostPermission()


def allow_any_path(_: Path) -> bool:
    """Allow every path."""
    return True


def _ignore(_: Progress) -> None:
    return None


@dataclass(frozen=True)
class ToolContext:
    """Everything one call may use."""

    workspace: Path
    """Absolute and resolved."""
    roots: tuple[Path, ...] = ()
    """Further folders to work in, resolved too; relative paths still start at the workspace."""
    thread_id: str = ""
    call_id: str = ""
    attempt: int = 1
    mark: str = ""
    """Identifies the processes of the call in their environment; empty: the tool chooses one."""
    cwd: Path | None = None
    """Current directory of the thread's shell; None means the workspace."""
    todo: Sequence[Mapping[str, Any]] = ()
    """The thread's plan: `{content, status}` of each step."""
    shown: Sequence[Mapping[str, Any]] = ()
    """What earlier results, still complete in the context, show of the paths of this call: `shown` of their
    metadata, each with its `path`."""
    answer: str | None = None
    """The user's answer to the question of this call; None if nobody was asked."""
    file_states: FileStates = field(default_factory=MemoryFileStates)
    blobs: BlobStore | None = None
    processes: ProcessRecorder | None = None
    sandbox: Sandbox | None = None
    """The sandbox for commands; None if the user wants none, or none for this call."""
    limits: Limits = field(default_factory=Limits)
    progress: Callable[[Progress], None] = _ignore
    cancellation: threading.Event = field(default_factory=threading.Event)
    """Set when the call is cancelled; for work in threads, which cannot be cancelled."""
    may_read: Callable[[Path], bool] = allow_any_path
    """Whether a search may show the name and contents of a resolved path."""
    host_permission: Callable[[str], HostPermission] = _no_host
    """What the rules say about a host, given with its port if that is not the default one."""
    cache: dict[str, Any] = field(default_factory=dict)
    """What earlier steps of the same call computed (its preview), for later ones (its execution) to use."""
    approved_paths: frozenset[Path] | None = None
    """The resolved paths that policy checked; None if the call was not checked."""
    observed: Mapping[str, Any] | None = None
    """What the approved preview was computed from; see `Preview.observed`."""

    @property
    def filters_files(self) -> bool:
        """Whether `may_read` restricts anything: asking it for many files is slow."""
        return self.may_read is not allow_any_path

    def resolve(self, given: str) -> ResolvedPath:
        """Where a path of the arguments leads. A tool must open only what this returns.

        Raises:
            PathRefused: see `tools.paths.resolve`; or it leads elsewhere than when policy checked the call.
        """
        found = resolve(given, workspace=self.workspace, roots=self.roots)
        if self.approved_paths is not None and found.path not in self.approved_paths:
            raise PathRefused(
                ToolErrorType.PERMISSION,
                f"{given!r} now leads to {str(found.path)!r}, which was not approved. Nothing was done.",
            )
        return found
