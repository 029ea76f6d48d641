"""The contract of all tools, and the names that tool authors import."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeGuard

from pydantic import BaseModel

from tools.context import (
    BlobStore,
    BytesFetched,
    FilesSearched,
    FileStates,
    HostPermission,
    Limits,
    McpProgress,
    MemoryFileStates,
    ProcessRecorder,
    Progress,
    ShellOutput,
    SubAgentStep,
    ToolContext,
)
from tools.description import ToolDescription, ToolExample
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
)
from tools.schema import declared_parameters

__all__ = [
    "BaseTool",
    "BlobStore",
    "BytesFetched",
    "CommandTarget",
    "DiffResult",
    "FileEffect",
    "FileStates",
    "FilesSearched",
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
    "failure",
    "is_tool",
]


@dataclass(frozen=True)
class PathTarget:
    """A file or folder, as written in the arguments."""

    text: str
    access: Literal["read", "write"] = "read"


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
    timeout_s: float = 600
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
    file_states: FileStates | None = None
    """Shared by the tools that are created together; used when no context is given."""

    def __init__(self, *, workspace: str | Path | None = None) -> None:
        self.workspace = workspace

    async def execute(self, *args: Any, **arguments: Any) -> ToolResult:  # noqa: ARG002 - open for every signature
        """Run the call. Declare the schema's fields as keywords and, if needed, `context: ToolContext | None`."""
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
        workspace = Path(self.workspace or ".").resolve()
        if self.file_states is None:
            self.file_states = MemoryFileStates()
        return ToolContext(workspace, file_states=self.file_states)


def is_tool(value: object) -> TypeGuard[BaseTool]:
    """Whether the value can be registered: an instance of BaseTool with a name."""
    return isinstance(value, BaseTool) and bool(value.name)
