"""The contract every tool fulfils, and the names tool authors import.

A tool declares what it does to the world; it never asks for permission and never learns who judged it.

What a call touches, as tools declare it. Nothing is resolved or judged here.
"""

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
    """A file or folder, as the arguments spell it."""

    text: str
    access: Literal["read", "write"] = "read"


@dataclass(frozen=True)
class HostTarget:
    """A network host, with its port where it is not the usual one."""

    text: str


@dataclass(frozen=True)
class CommandTarget:
    """A shell command."""

    text: str
    working_directory: str = ""
    is_bash: bool = True
    """Written for bash; anything else cannot be read."""


Target = PathTarget | HostTarget | CommandTarget


class NoArguments(BaseModel):
    """The schema of tools that take no arguments."""


class BaseTool:
    """A tool: class attributes that declare it, and `execute`.

    Subclasses need no `super().__init__`. The optional methods get the arguments validated, as JSON values.
    """

    name: str = ""
    description: str | ToolDescription = ""
    risk_level: ToolRiskLevel = ToolRiskLevel.MEDIUM
    args_schema: type[BaseModel] = NoArguments
    kind: ToolKind = ToolKind.EXECUTE
    display_name: str = ""
    """Empty: the name."""
    risk_is_configured: bool = False
    """Whether `risk_level` is the user's own setting; believed of the tools of MCP servers alone."""
    original_name: str = ""
    """What its origin calls it, where it is offered under a name made for it."""
    rule_name: str = ""
    """A further name under which rules may speak of it: made of names as their origin spells them."""
    version: str = "1.0.0"
    category: str = "general"
    tags: tuple[str, ...] = ()
    strict: bool = False
    """Ask the provider for arguments that hold the schema exactly."""
    defer: bool = False
    """Offer the name only; the schema is loaded by a search."""
    in_plan_mode: bool | None = None
    """Offered while planning; None: exactly the read-only tools are."""
    timeout_s: float = 600
    max_result_chars: int | None = None
    """None: the limit of the context."""
    internal_metadata: ClassVar[Mapping[str, Any]] = {}
    """For the program; never sent to the model."""
    requires_input: bool = False
    """A call of it is a question to the user: it always waits for their words, which come as `context.answer`."""
    goes_on: bool = False
    """A call of it that was broken off goes on where it stood when it is run again: it keeps its own account."""
    argument_aliases: ClassVar[Mapping[str, str]] = {}
    """Further names under which models give an argument, e.g. `path` for `file_path`."""
    workspace: str | Path | None = None
    file_states: FileStates | None = None
    """Shared among the tools made together; used where no context is injected."""

    def __init__(self, *, workspace: str | Path | None = None) -> None:
        self.workspace = workspace

    async def execute(self, *args: Any, **arguments: Any) -> ToolResult:  # noqa: ARG002 - open for every signature
        """Do it. Declare the schema's fields as keywords and, where wanted, `context: ToolContext | None`."""
        return failure(ToolErrorType.EXECUTION, f"{self.name!r} has nothing to execute; use another tool.")

    async def describe(self) -> str | ToolDescription:
        """The description, computed when asked."""
        return self.description

    async def parameters(self) -> dict[str, Any]:
        """The JSON schema of the arguments, computed when asked."""
        return declared_parameters(self.args_schema)

    def validate(self, args: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - overridden where the schema says too little
        """What is wrong with the arguments beyond the schema, as a sentence; None when nothing is. No effects."""
        return None

    def is_read_only(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - overridden where the arguments matter
        """Whether this very call changes nothing."""
        return self.kind == ToolKind.READONLY

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:
        """Whether this very call may run beside neighbours that say the same."""
        return self.is_read_only(args)

    def targets(self, args: Mapping[str, Any]) -> list[Target]:  # noqa: ARG002 - nothing is declared by default
        """The paths, hosts and commands the call touches: what policy judges."""
        return []

    def signature(self, args: Mapping[str, Any]) -> str:
        """The text that rules of this tool match on: the first target, else nothing."""
        for target in self.targets(args):
            return target.text
        return ""

    def suggest_rule(self, args: Mapping[str, Any]) -> str:
        """The narrowest sensible "always"."""
        signature = self.signature(args)
        return f"{self.name}({signature})" if signature else self.name

    def display_call(self, args: Mapping[str, Any]) -> str:
        """One line for the user: what the call is about."""
        return f"{self.display_name or self.name} {self.signature(args)}".rstrip()

    async def preview(self, args: Mapping[str, Any], context: ToolContext | None = None) -> Preview | None:  # noqa: ARG002 - nothing by default
        """What the call would do, without doing it; None when there is nothing to show.

        Raises:
            PathRefused: it is certain already that the call cannot work.
        """
        return None

    async def predict_effect(
        self,
        args: Mapping[str, Any],  # noqa: ARG002 - nothing by default
        context: ToolContext | None = None,  # noqa: ARG002 - as above
    ) -> FileEffect | None:
        """What the call is about to do to a file; None when that cannot be known. No effects."""
        return None

    async def reconcile(self, call: InterruptedCall) -> Reconciliation:
        """What became of a call that was broken off. No effects."""
        if self.is_read_only(call.arguments):
            return Reconciliation("not_applied", f"{self.name} only reads: nothing was changed.")
        return Reconciliation("unknown", f"What {self.name} did before it was broken off cannot be found out.")

    def context_or_default(self, context: ToolContext | None) -> ToolContext:
        """The injected context, or one made of the tool's own workspace and shared file states."""
        if context is not None:
            return context
        workspace = Path(self.workspace or ".").resolve()
        if self.file_states is None:
            self.file_states = MemoryFileStates()
        return ToolContext(workspace, file_states=self.file_states)


def is_tool(value: object) -> TypeGuard[BaseTool]:
    """Whether the value can be registered: an instance of BaseTool that says its name."""
    return isinstance(value, BaseTool) and bool(value.name)
