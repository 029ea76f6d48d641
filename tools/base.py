"""The contract of all tools, and the names that tool authors import."""

import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, signature
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeGuard

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from tools.description import ToolDescription, ToolExample
from tools.paths import PathRefused, ResolvedPath, given_path, quoted_path, resolve
from tools.result import (
    DiffResult,
    FileEffect,
    InterruptedCall,
    Preview,
    Reconciliation,
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
    report_bug,
)
from tools.sandbox.sandbox import Sandbox
from tools.schema import (
    CONTEXT_KEYWORDS,
    InvalidArguments,
    apply_aliases,
    context_keyword,
    declared_parameters,
    parse_arguments,
    to_keywords,
)

__all__ = [
    "BaseTool",
    "BlobStore",
    "BytesFetched",
    "CommandTarget",
    "DiffResult",
    "EditorBuffers",
    "FileEffect",
    "FileStates",
    "FilesSearched",
    "FunctionTool",
    "HostPermission",
    "HostTarget",
    "InterruptedCall",
    "Limits",
    "McpProgress",
    "MemoryFileStates",
    "NoArguments",
    "PathTarget",
    "Preview",
    "ProcessRecorder",
    "Progress",
    "Reconciliation",
    "ShellOutput",
    "SubAgentStep",
    "Target",
    "ToolContext",
    "ToolDescription",
    "ToolErrorType",
    "ToolExample",
    "ToolKind",
    "ToolResult",
    "ToolRiskLevel",
    "allow_any_path",
    "failure",
    "is_tool",
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


class MemoryFileStates:
    """File states in memory: for tools used without a session."""

    def __init__(self) -> None:
        self._digests: dict[tuple[str, str], str] = {}

    async def get(self, thread_id: str, path: str) -> str | None:
        return self._digests.get((thread_id, path))

    async def set(self, thread_id: str, path: str, sha256: str) -> None:
        self._digests[thread_id, path] = sha256


class EditorBuffers(Protocol):
    """The files that are open in the user's editor."""

    async def unsaved(self, path: Path, on_disk: bytes | None) -> bytes | None:
        """What saving the file there would write, if that is not what is on the disk; None if nothing is unsaved.

        Args:
            path: resolved.
            on_disk: the content of the file; None if there is none.

        Raises:
            TimeoutError: the editor does not answer.
        """
        ...


class ProcessRecorder(Protocol):
    """Records a process group before its command starts."""

    async def record(self, context: "ToolContext", group: int, start_time: str) -> None:
        """Durable when it returns; if it raises, the command never runs."""
        ...


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
    """Of what a command writes, so much is kept: half of it the beginning, half the end."""
    call_s: float | None = None
    """Longest time for one call, in seconds, except for tools with `ends_in_time`; None: the tool's `timeout_s`."""
    shells: int = 8
    """Background shells a thread may have running."""
    look_s: float = 0.05
    """Time for listing the work tree before and after a command; if it runs out, the changes stay unknown."""


@dataclass(frozen=True)
class HostPermission:
    """What the user's rules say about a network host."""

    is_denied: bool = False
    is_closed: bool = False
    """By a deny rule: this also holds for an address that a host turns out to have."""
    may_follow: bool = False
    """A redirect may lead there without approval."""
    may_be_private: bool = False
    """It may be in a private network, or be this machine."""


def allow_any_path(_: Path) -> bool:
    """Allow every path."""
    return True


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
    buffers: EditorBuffers | None = None
    """The user's editor; None if there is none, or if it does not return the text of its files."""
    processes: ProcessRecorder | None = None
    sandbox: Sandbox | None = None
    """The sandbox for commands; None if the user wants none, or none for this call."""
    limits: Limits = field(default_factory=Limits)
    progress: Callable[[Progress], None] = lambda _: None
    cancellation: threading.Event = field(default_factory=threading.Event)
    """Set when the call is cancelled; for work in threads, which cannot be cancelled."""
    may_read: Callable[[Path], bool] = allow_any_path
    """Whether a search may show the name and contents of a resolved path."""
    host_permission: Callable[[str], HostPermission] = lambda _: HostPermission()
    """What the rules say about a host, given with its port if that is not the default one."""
    cache: dict[str, Any] = field(default_factory=dict)
    """What earlier steps of the same call computed (its preview), for later ones (its execution) to use."""
    has_policy: bool = False
    """Whether policy decides about the call. Without it the tool itself keeps inside the workspace and the roots,
    and refuses what no mode allows."""
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
            PathRefused: see `tools.paths.resolve`; or it leads elsewhere than when policy checked the call; or,
                without policy, out of the workspace and the roots.
        """
        found = replace(resolve(given_path(given), workspace=self.workspace, roots=self.roots), given=given)
        if not (found.inside or self.has_policy):
            raise PathRefused(
                ToolErrorType.PERMISSION,
                f"{quoted_path(given)} is outside the workspace {str(self.workspace)!r}; name a path in it.",
            )
        if self.approved_paths is not None and found.path not in self.approved_paths:
            raise PathRefused(
                ToolErrorType.PERMISSION,
                f"{quoted_path(given)} now leads to {quoted_path(str(found.path))}, which was not approved. "
                "Nothing was done.",
            )
        return found


@dataclass(frozen=True)
class PathTarget:
    """A file or folder, as written in the arguments."""

    text: str
    access: Literal["read", "write", "edit"] = "read"
    """An edit reads and writes."""


@dataclass(frozen=True)
class HostTarget:
    """A network host, with its port if that is not the default one."""

    text: str


@dataclass(frozen=True)
class CommandTarget:
    """A shell command."""

    text: str
    working_directory: str = ""
    is_bash: bool = True
    """Only bash commands can be analysed by policy."""


Target = PathTarget | HostTarget | CommandTarget


class NoArguments(BaseModel):
    """The schema of tools that take no arguments."""


class BaseTool:
    """A tool: class attributes that declare it, and `execute`.

    Subclasses need no `super().__init__`. The optional methods get validated arguments, as JSON values.
    """

    name: str = ""
    description: str | ToolDescription = ""
    risk_level: ToolRiskLevel = ToolRiskLevel.MEDIUM
    args_schema: type[BaseModel] = NoArguments
    kind: ToolKind = ToolKind.EXECUTE
    display_name: str = ""
    """Empty: the name."""
    risk_is_configured: bool = False
    """Whether the user set `risk_level`; counts only for tools of MCP servers."""
    original_name: str = ""
    """The name on its MCP server, if it is offered under another one."""
    rule_name: str = ""
    """Another name that rules may use: made of the original names of server and tool."""
    version: str = "1.0.0"
    category: str = "general"
    tags: tuple[str, ...] = ()
    strict: bool = False
    """Ask the provider for arguments that match the schema exactly."""
    defer: bool = False
    """Offer only the name; `tool_search` loads the schema."""
    in_plan_mode: bool | None = None
    """Whether it is offered in plan mode; None: if it is read-only."""
    only_in_plan_mode: bool = False
    timeout_s: float = 600
    ends_in_time: bool = False
    """It keeps within `limits.call_s` itself, and returns what it has until then."""
    max_result_chars: int | None = None
    """None: the limit of the context."""
    internal_metadata: ClassVar[Mapping[str, Any]] = {}
    """For the program; never sent to the model."""
    requires_input: bool = False
    """A call is a question to the user, who always has to answer it; the answer is in `context.answer`."""
    resumable: bool = False
    """An interrupted call continues where it was when it is run again, because the tool stores its own progress."""
    argument_aliases: ClassVar[Mapping[str, str]] = {}
    """Other names that models use for an argument, e.g. `path` for `file_path`."""
    workspace: str | Path | None = None
    roots: Sequence[str | Path] = ()
    """Further folders that the tool may use when no context is given."""
    file_states: FileStates | None = None
    """Shared by the tools that are created together; used when no context is given."""

    def __init__(self, *, workspace: str | Path | None = None) -> None:
        self.workspace = workspace

    def __init_subclass__(cls, **options: Any) -> None:
        """Check the arguments of every call, so that bad ones give an error result however `execute` is called."""
        super().__init_subclass__(**options)
        execute: Any = cls.__dict__.get("execute")
        if isasyncgenfunction(execute):
            execute = _collected(execute)
        if iscoroutinefunction(execute):  # Otherwise the tool is not usable, and is reported.
            cls.execute = _checked(execute)  # type: ignore[method-assign, assignment]  # as callable as before

    async def execute(self, *args: Any, **arguments: Any) -> ToolResult:  # noqa: ARG002 - open for every signature
        """Run the call. Declare the schema's fields as keywords and, if needed, `context: ToolContext | None`.

        It may be an async generator that yields progress, a text or one of `Progress`, and at last the result.
        """
        return failure(ToolErrorType.EXECUTION, f"{self.name!r} does not implement execute; use another tool.")

    async def describe(self) -> str | ToolDescription:
        """The description, computed on request."""
        return self.description

    async def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments, computed on request."""
        return declared_parameters(self.args_schema)

    def validate(self, args: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - overridden where the schema says too little
        """What is wrong with arguments that match the schema, as a sentence, or None. No effects."""
        return None

    def is_read_only(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - overridden where the arguments matter
        """Whether this call changes nothing."""
        return self.kind == ToolKind.READONLY

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:
        """Whether this call may run in parallel with others that may."""
        return self.is_read_only(args)

    def targets(self, args: Mapping[str, Any]) -> list[Target]:  # noqa: ARG002 - nothing is declared by default
        """The paths, hosts and commands that the call accesses: policy decides on these."""
        return []

    def signature(self, args: Mapping[str, Any]) -> str:
        """The text that rules of this tool match: by default the first target."""
        for target in self.targets(args):
            return target.text
        return ""

    def suggest_rule(self, args: Mapping[str, Any]) -> str:
        """The narrowest sensible rule for "always allow"."""
        signature = self.signature(args)
        return f"{self.name}({signature})" if signature else self.name

    def display_call(self, args: Mapping[str, Any]) -> str:
        """One line for the user that describes the call."""
        return f"{self.display_name or self.name} {self.signature(args)}".rstrip()

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:  # noqa: ARG002 - nothing by default
        """What the call would do, without doing it; None if there is nothing to show.

        Raises:
            PathRefused: the call cannot succeed.
        """
        return None

    async def predict_effect(
        self,
        args: Mapping[str, Any],  # noqa: ARG002 - nothing by default
        context: ToolContext | None = None,  # noqa: ARG002 - as above
    ) -> FileEffect | None:
        """The effect that the call will have on a file; None if that cannot be known. No effects."""
        return None

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """Whether an interrupted call took effect. No effects."""
        if self.is_read_only(call.arguments):
            return Reconciliation("not_applied", f"{self.name} only reads: nothing was changed.")
        return Reconciliation(
            "unknown", f"There is no way to check what {self.name} did before it was interrupted."
        )

    def context_or_default(self, context: ToolContext | None) -> ToolContext:
        """The given context, or one made of the tool's own workspace and file states."""
        if context is not None:
            return context
        workspace, *roots = (Path(one).expanduser().resolve() for one in (self.workspace or ".", *self.roots))
        if self.file_states is None:
            self.file_states = MemoryFileStates()
        return ToolContext(workspace, tuple(roots), file_states=self.file_states)


def _checked(execute: Callable[..., Awaitable[ToolResult]]) -> Callable[..., Awaitable[ToolResult]]:
    """The method for callers that may have given any arguments: every failure is a result.

    `tools.running.execute`, which has checked the arguments, calls the method itself.
    """

    @wraps(execute)
    async def checked(self: BaseTool, **arguments: Any) -> ToolResult:
        keyword = context_keyword(self.args_schema)
        context = {keyword: arguments.pop(keyword)} if keyword in arguments else {}
        try:
            named = apply_aliases(arguments, self.argument_aliases, self.args_schema.model_fields)
            parsed = parse_arguments(self.args_schema, to_jsonable_python(named))
            objection = self.validate(parsed.model_dump(mode="json", exclude_unset=True))
        except InvalidArguments as error:
            return failure(ToolErrorType.VALIDATION, str(error))
        except (ValueError, RecursionError) as error:
            return failure(ToolErrorType.VALIDATION, f"The arguments are not JSON values: {error}.")
        if objection:
            return failure(ToolErrorType.VALIDATION, objection)
        caught = _Caught()
        with caught:
            return await execute(self, **to_keywords(parsed), **context)
        if isinstance(caught.error, PathRefused):
            return caught.error.as_result()
        return report_bug(self.name, caught.error)

    return checked


class _Caught:
    """What the block raises becomes a value; interrupts and cancellations pass."""

    error: Exception

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception):
            self.error = error
        return isinstance(error, Exception)


def _collected(execute: Callable[..., AsyncIterator[object]]) -> Callable[..., Awaitable[ToolResult]]:
    """An `execute` that yields its progress, as one that reports it to the context and returns the result."""
    declared = signature(execute)
    takes = {one.name for one in declared.parameters.values()}

    async def collected(self: BaseTool, **arguments: Any) -> ToolResult:
        keyword = context_keyword(self.args_schema)
        context = self.context_or_default(arguments.pop(keyword, None))
        given = {keyword: context} if keyword in takes else {}
        return await _last_result(execute(self, **arguments, **given), context)

    added = (name for name in CONTEXT_KEYWORDS if name not in takes)
    extra = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in added]
    parameters = sorted([*declared.parameters.values(), *extra], key=lambda one: one.kind)
    collected.__signature__ = declared.replace(parameters=parameters)  # type: ignore[attr-defined]  # read by inspect
    return collected


async def _last_result(steps: AsyncIterator[object], context: ToolContext) -> ToolResult:
    """Report the progress that an async generator yields, and return the result that ends it.

    Raises:
        TypeError: it ended without a result.
    """
    async with aclosing(steps) as given:  # type: ignore[type-var]  # an async generator has aclose
        async for step in given:
            if isinstance(step, ToolResult):
                return step
            context.progress(ShellOutput(step) if isinstance(step, str) else step)  # type: ignore[arg-type]  # not checked
    raise TypeError("execute ended without yielding a ToolResult")


class FunctionTool(BaseTool):
    """A tool that `create_tool` makes of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._wants_context = "context" in signature(function).parameters

    async def execute(self, *, context: ToolContext | None = None, **arguments: Any) -> ToolResult:
        here = self.context_or_default(context)
        if self._wants_context:
            arguments["context"] = here
        made = self._function(**arguments)
        result = await _last_result(made, here) if isinstance(made, AsyncIterator) else await made
        return ToolResult(result) if isinstance(result, str) else result


def is_tool(value: object) -> TypeGuard[BaseTool]:
    """Whether the value can be registered: an instance of BaseTool with a name."""
    return isinstance(value, BaseTool) and bool(value.name)
