"""What is judged and what comes out: frozen facts about one call, and a decision. Nothing looks at the world."""

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Literal, get_args

from policy.risk import Risk
from policy.rules import Grant, Rules
from policy.shell.shell_text import ShellText

__all__ = ["MODES", "CallFacts", "Decision", "Mode", "PathFact", "PolicySettings", "Verdict"]

Verdict = Literal["allow", "ask", "deny"]
Mode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True)
class PathFact:
    """A path a call touches, resolved by whoever asks."""

    given: str
    resolved: PurePath
    """Absolute, free of links."""
    access: Literal["read", "write"]
    inside: bool
    """In the workspace."""
    reserved: bool = False
    """Belongs to the agent itself: its configuration, database, blobs, locks."""
    is_memory: bool = False
    """The agent's memory file: outside the workspace, and yet no surprise."""
    others: tuple[PurePath, ...] = ()
    """Other names of the same object that rules mention."""
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
    """A further name by which rules may speak of the tool: `mcp__SERVER__TOOL` in the server's own spelling."""
    plans: bool = False
    """Marked for use while planning."""
    wants_answer: bool = False
    """The call is itself a question to the user: there is nothing to allow, only something to answer."""
    cwd: PurePath | None = None
    """Where a command would start; None means the workspace."""
    paths: tuple[PathFact, ...] = ()
    command: str | None = None
    """What a shell would run."""
    shell: ShellText | None = None
    """The command, read; None where there is no command, or nobody read it: then no rule allows it."""
    redirects: tuple[PathFact, ...] = ()
    """Files that redirections in the command may write, from every folder it may be in."""
    mentions: tuple[PurePath, ...] = ()
    """Where words of the command lead if they are paths, absolute and free of links."""
    patterns: tuple[PurePath, ...] = ()
    """Where patterns of file names in the command lead, absolute; the folders before a wild sign free of links."""
    hosts: tuple[str, ...] = ()
    """Hosts it talks to, each with its port where that is not the usual one."""
    signature: str = ""
    """What rules match where there is neither path nor command nor host."""

    @property
    def place(self) -> str:
        """Where a command would start, relative to the workspace where it lies in it."""
        start = self.cwd or self.workspace
        return str(start.relative_to(self.workspace) if start.is_relative_to(self.workspace) else start)


@dataclass(frozen=True)
class PolicySettings:
    """What the user configured."""

    rules: Rules = field(default_factory=Rules)
    risk: dict[str, str] = field(default_factory=dict)
    """Tool name to low, medium or high: goes before everything else known about a tool's risk."""
    reserved: tuple[PurePath, ...] = ()
    """Folders and files of the agent itself, absolute and resolved."""
    exempt_files: tuple[PurePath, ...] = ()
    """Exceptions from `reserved`: the memory file."""
    home: PurePath | None = None
    """What `~` in a path rule stands for."""
    grants: tuple[Grant, ...] = ()
    """What was allowed "always" and holds where the call is made; the mode is looked at when it is judged."""


@dataclass(frozen=True)
class Decision:
    """What policy says to a call."""

    verdict: Verdict
    rule: str
    """Name of the rule that spoke; a user's own rule as written, with its list in front: `deny bash(rm *)`."""
    reason: str
    """One sentence, for the user and the log."""
