"""What a tool may use while it runs, and nothing else: no graph, no model, no terminal, no database."""

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
    """How much of a download is there."""

    done: int
    total: int | None = None


@dataclass(frozen=True)
class FilesSearched:
    """How many files a search has looked at."""

    count: int


@dataclass(frozen=True)
class McpProgress:
    """What a server told about its work."""

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
    """Content-addressed bytes; references read `blob:...`."""

    def put(self, data: bytes) -> str:
        """Store and return the reference; OSError when there is no room."""
        ...

    def get(self, reference: str) -> bytes:
        """The bytes behind a reference; LookupError when there are none."""
        ...

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """Path of the private file that takes a running call's output; its folder exists."""
        ...


class FileStates(Protocol):
    """What a thread last read or wrote of each file: resolved path to SHA-256 of the whole content."""

    async def get(self, thread_id: str, path: str) -> str | None: ...

    async def set(self, thread_id: str, path: str, sha256: str) -> None: ...


class ProcessRecorder(Protocol):
    """Where a process group is written down before its command is let go."""

    async def record(self, context: "ToolContext", group: int, start_time: str) -> None:
        """Durable when it returns; when it raises, the command never runs."""
        ...


class MemoryFileStates:
    """File states that last as long as the object: for tools used without a session."""

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
    """Bounds on what one call takes and gives."""

    result_chars: int = 30_000
    """Longer results are offloaded; a tool's own `max_result_chars` goes first."""
    message_chars: int = 200_000
    """All results of one model message together; its calls have equal shares of it."""
    line_chars: int = 2_000
    read_lines: int = 2_000
    file_bytes: int = 64 * 1024 * 1024
    """Larger files are neither written nor remembered, and are read in ranges only."""
    scan_bytes: int = 1024 * 1024 * 1024
    """How far into a file a range may lie."""
    spool_bytes: int = 64 * 1024 * 1024
    """A command that writes more is stopped."""
    shells: int = 8
    """So many background shells a thread may have running."""
    look_s: float = 0.05
    """What a look at the work tree before and one after a command may take each; else its changes stay unknown."""


@dataclass(frozen=True)
class HostPermission:
    """What the user's rules say to a network host."""

    is_denied: bool = False
    may_follow: bool = False
    """A redirection may lead there unasked."""
    may_be_private: bool = False
    """It may lie in a private network, or be this machine."""


def _no_host(_: str) -> HostPermission:
    return HostPermission()


def allow_any_path(_: Path) -> bool:
    """Nothing is withheld."""
    return True


def _ignore(_: Progress) -> None:
    return None


@dataclass(frozen=True)
class ToolContext:
    """One call's surroundings."""

    workspace: Path
    """Absolute and resolved."""
    roots: tuple[Path, ...] = ()
    """Further folders to work in, resolved too; relative paths start at the workspace all the same."""
    thread_id: str = ""
    call_id: str = ""
    attempt: int = 1
    mark: str = ""
    """What its processes carry in their environment, to be known by; of a tool used alone, chosen by the tool."""
    cwd: Path | None = None
    """Where the thread's shell stands; None means the workspace."""
    todo: Sequence[Mapping[str, Any]] = ()
    """The thread's plan: `{content, status}` of each step."""
    shown: Sequence[Mapping[str, Any]] = ()
    """What earlier results that still stand whole before the model show of the paths that this call names: the
    `shown` of their metadata, each with its `path`."""
    answer: str | None = None
    """What the user answered to the question that this call puts; None where nobody was asked."""
    file_states: FileStates = field(default_factory=MemoryFileStates)
    blobs: BlobStore | None = None
    processes: ProcessRecorder | None = None
    sandbox: Sandbox | None = None
    """The walls that commands are run in; None where the user wants none, or none for this very call."""
    limits: Limits = field(default_factory=Limits)
    progress: Callable[[Progress], None] = _ignore
    cancellation: threading.Event = field(default_factory=threading.Event)
    """Set when the call is being stopped; for work in threads, which cannot be cancelled."""
    may_read: Callable[[Path], bool] = allow_any_path
    """Whether a tool that searches may show what a resolved path is called and holds."""
    host_permission: Callable[[str], HostPermission] = _no_host
    """What the rules say to a host, written as they name it: with its port where that is not the usual one."""
    approved_paths: frozenset[Path] | None = None
    """The resolved paths this call was judged by; None where nobody judged it."""
    observed: Mapping[str, Any] | None = None
    """What the preview that was consented to had seen; see `Preview.observed`."""

    @property
    def filters_files(self) -> bool:
        """Whether `may_read` has to be asked at all: of many files that takes long."""
        return self.may_read is not allow_any_path

    def resolve(self, given: str) -> ResolvedPath:
        """Where a path of the arguments leads; a tool opens what this returns and nothing else.

        Raises:
            PathRefused: see `tools.paths.resolve`; or it leads elsewhere than when the call was judged.
        """
        found = resolve(given, workspace=self.workspace, roots=self.roots)
        if self.approved_paths is not None and found.path not in self.approved_paths:
            raise PathRefused(
                ToolErrorType.PERMISSION,
                f"{given!r} was made to lead to {str(found.path)!r} at this very moment. Nothing was done.",
            )
        return found
