"""The input and the output of policy: facts about one call, the risk of its tool, the settings, and a decision."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal, get_args

from policy.rules import Grant, Rules
from policy.shell.shell_text import ShellText

__all__ = [
    "DEFAULT_TOOL_RISK",
    "DEFAULT_UNKNOWN_RISK",
    "MODES",
    "CallFacts",
    "Decision",
    "Mode",
    "PathFact",
    "PolicySettings",
    "Risk",
    "Sandboxing",
    "Verdict",
    "risk_of",
]

Risk = Literal["low", "medium", "high"]
Verdict = Literal["allow", "ask", "deny"]
Sandboxing = Literal["none", "closed", "open"]
"""Whether a command runs in a sandbox, and whether that has a network: open."""
Mode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class PathFact:
    """A path that a call reads or writes, resolved by the caller."""

    given: str
    resolved: PurePath
    """Absolute, free of links."""
    access: Literal["read", "write", "edit"]
    """An edit reads and writes."""
    inside: bool
    """In the workspace."""
    reserved: bool = False
    """Belongs to the agent itself: its configuration, database, blobs, locks."""
    is_memory: bool = False
    """The agent's memory file, which may be used although it is outside the workspace."""
    aliases: tuple[PurePath, ...] = ()
    """Other names of the same object that rules use."""
    exposes_process: bool = False
    """Leads through the memory, environment or descriptors of a process."""


@dataclass(frozen=True)
class CallFacts:
    """One call."""

    tool: str
    mode: str
    risk: Risk
    kind: Literal["readonly", "write", "execute"]
    workspace: PurePath
    """Absolute, free of links."""
    original_tool: str = ""
    """Another name that rules may use for the tool: `mcp__SERVER__TOOL` in the server's own spelling."""
    allowed_in_plan_mode: bool = False
    """The tool may be used in plan mode."""
    requires_input: bool = False
    """The call is itself a question to the user, so the user must answer it in every mode."""
    cwd: PurePath | None = None
    """Where a command would start; None for the workspace."""
    paths: tuple[PathFact, ...] = ()
    command: str | None = None
    """What a shell would run."""
    shell: ShellText | None = None
    """The parsed command; None where there is no command, or where it was not parsed, so that no rule allows it."""
    folders: tuple[PathFact, ...] = ()
    """The folders that its commands work in beside the one it starts in, where they lead for certain."""
    redirects: tuple[PathFact, ...] = ()
    """Files that redirections in the command may write, from every folder it may be in."""
    mentions: tuple[PurePath, ...] = ()
    """The words of the command as paths, absolute and free of links."""
    protected_words: frozenset[str] = frozenset()
    """Words of the command that lead to a protected name."""
    outside_words: frozenset[str] = frozenset()
    """Words of the command, and of its redirections, that lead out of the workspace; "" is where it starts."""
    sandbox: Sandboxing = "none"
    """The sandbox that the command runs in."""
    patterns: tuple[PurePath, ...] = ()
    """The patterns of file names in the command, absolute; the folders before a wildcard are free of links."""
    declares_access: bool = True
    """Its tool says what it reads, writes, contacts or runs; one that does not may do anything."""
    hosts: tuple[str, ...] = ()
    """Hosts it contacts, each with its port where that is not the usual one."""
    signature: str = ""
    """What rules match if there is no path, command or host."""
    untrusted_content: str = ""
    """What the conversation contains that is neither the user's nor a trusted folder's, in words; looked up only
    for a call that changes the memory file."""

    @property
    def changes_memory(self) -> bool:
        """Whether it writes the agent's memory file, which is in the prompt of every later conversation."""
        return any(path.is_memory and path.access != "read" for path in (*self.paths, *self.redirects))

    @property
    def folder(self) -> str:
        """Where a command would start, relative to the workspace if it is inside."""
        return self.relative(self.cwd or self.workspace)

    def relative(self, path: PurePath) -> str:
        """A folder relative to the workspace if it is inside."""
        return str(path.relative_to(self.workspace) if path.is_relative_to(self.workspace) else path)


@dataclass(frozen=True)
class PolicySettings:
    """What the user configured, and the grants that may apply."""

    rules: Rules = field(default_factory=Rules)
    risk: dict[str, str] = field(default_factory=dict)
    """Tool name to low, medium or high: overrides everything else known about a tool's risk."""
    shell_risk: Literal["call", "declared"] = "call"
    """Whether a command in a sandbox may lower the risk that its tool declares."""
    reserved: tuple[PurePath, ...] = ()
    """Folders and files of the agent itself, absolute and resolved."""
    program_folders: tuple[PurePath, ...] = ()
    """Folders in which programs are looked for, absolute and resolved: what is in them decides what runs later."""
    exempt_files: tuple[PurePath, ...] = ()
    """Exceptions from `reserved`: the memory file."""
    home: PurePath | None = None
    """What `~` means in a path rule."""
    grants: tuple[Grant, ...] = ()
    """What was allowed "always" for the thread, the project or the user; `evaluate` compares the mode."""

    def holds_programs(self, path: PurePath, workspace: PurePath) -> bool:
        """Whether a resolved path is in a folder of programs, other than one that contains the whole workspace."""
        folders = (folder for folder in self.program_folders if path.is_relative_to(folder))
        return any(not workspace.is_relative_to(folder) for folder in folders)


@dataclass(frozen=True)
class Decision:
    """What policy decides about a call."""

    verdict: Verdict
    rule: str
    """Name of the rule that decided; a user's rule as written, after the name of its list: `deny bash(rm *)`."""
    reason: str
    """One sentence, for the user and the log."""


DEFAULT_TOOL_RISK: dict[str, str] = {
    "read_file": "low",
    "write_file": "medium",
    "edit_file": "medium",
    "ls": "low",
    "glob": "low",
    "grep": "low",
    "bash": "high",
    "powershell": "high",
    "bash_output": "low",
    "bash_list": "low",
    "bash_kill": "low",
    "web_fetch": "medium",
    "web_search": "medium",
    "save_memory": "low",
    "todo_write": "low",
    "todo_read": "low",
    "ask_user": "low",
    "present_plan": "low",
    "new_task": "low",
    "attempt_completion": "low",
    "tool_search": "low",
    "skill": "low",
}

DEFAULT_UNKNOWN_RISK = "medium"
"""Risk of an unknown tool, and the least risk that a third-party tool can declare."""

_ORDER: tuple[Risk, ...] = ("low", "medium", "high")


def risk_of(
    tool_name: str, declared: str | None, *, is_own: bool, settings: Mapping[str, str] | None = None
) -> Risk:
    """The risk of a call: the user's setting, else that of the table, else the one the tool declares.

    The table and a low declaration count for our own tools only; a third-party tool has at least medium risk, and
    so has a tool that declares none.
    """
    if settings and tool_name in settings:
        risk: str | None = settings[tool_name]
    elif is_own and tool_name in DEFAULT_TOOL_RISK:
        risk = DEFAULT_TOOL_RISK[tool_name]
    else:
        risk = declared if is_own or declared == "high" else DEFAULT_UNKNOWN_RISK
    match risk:
        case "low" | "high":
            return risk
        case _:
            return "medium"
