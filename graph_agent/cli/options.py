"""Options that several commands share, and the examples that each command's help shows."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from typer import Option

from graph_agent.cli.exit_codes import MEANINGS

__all__ = [
    "DATABASE_HELP",
    "DEBUG_HELP",
    "EXAMPLES",
    "AsJson",
    "Database",
    "default_workspace",
    "describe_exit_codes",
    "find_examples",
    "resolve_database",
]

DEBUG_HELP = "Write tracebacks and debug messages to the log file."
DATABASE_HELP = (
    "Database: a file or a postgresql:// URL. Default: $GRAPH_AGENT_DB, else the setting `database`, else a file "
    "in the data folder."
)
Database = Annotated[str | None, Option("--db", metavar="FILE", help=DATABASE_HELP)]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "graph-agent 'what does this project do?'",
        "git diff | graph-agent -p 'review this change'",
        "graph-agent -c -m gpt-5-mini 'and now the tests'",
    ),
    "chat": ("graph-agent chat", "graph-agent chat 'what does this project do?' --mode plan"),
    "run": (
        "graph-agent run 'make the tests pass' --mode acceptEdits --max-steps 50",
        "graph-agent run - --output json < task.md",
        "graph-agent run 'list the open questions' --json-schema answer.json --output json",
        "graph-agent run --resume shop --approve all",
        "graph-agent run --resume shop --reject 1a2b3c4d --reason 'use git mv'",
    ),
    "resume": ("graph-agent resume", "graph-agent resume shop", "graph-agent resume 8a7f3c21"),
    "acp": ("graph-agent acp", "graph-agent acp --mode plan --trust"),
    "web": (
        "graph-agent web",
        "graph-agent web --read-only --port 8080",
        "graph-agent web --run --host 0.0.0.0 --allow-remote --allow-host agent.example.com",
    ),
    "demo": ("graph-agent demo", "graph-agent demo --yes"),
    "inspect": (
        "graph-agent inspect",
        "graph-agent inspect shop --path messages.3.content",
        "graph-agent inspect shop --watch --until idle --json",
    ),
    "fork": ("graph-agent fork 8a7f3c21", "graph-agent fork shop --as shop-2"),
    "rewind": (
        "graph-agent rewind 8a7f3c21 --dry-run",
        "graph-agent rewind 8a7f3c21 --files-only --yes",
        "graph-agent rewind shop --undo",
    ),
    "compact": ("graph-agent compact shop",),
    "calls": ("graph-agent calls", "graph-agent calls shop --status interrupted --json"),
    "recover": (
        "graph-agent recover",
        "graph-agent recover --retry 1a2b3c4d",
        "graph-agent recover shop --done 1a2b3c4d --result 'it was deployed' --all cancel",
    ),
    "history": ("graph-agent history --last 10", "graph-agent history shop --json"),
    "graph": ("graph-agent graph", "graph-agent graph shop", "graph-agent graph shop --format mermaid"),
    "diff": ("graph-agent diff 8a7f3c21 9b8e4d32", "graph-agent diff shop shop-2 --json"),
    "init": ("graph-agent init", "graph-agent init --print"),
    "update": ("graph-agent update", "graph-agent update --print"),
    "doctor": ("graph-agent doctor", "graph-agent doctor --backup threads.db", "graph-agent doctor --repair"),
    "worker": (
        "graph-agent worker",
        "graph-agent worker -j 4",
        "graph-agent worker --once --grace 5m",
        "graph-agent worker --host-label build1",
    ),
    "top": ("graph-agent top", "graph-agent top --once --json"),
    "tasks add": (
        "graph-agent tasks add 'update the dependencies and make the tests pass' --worktree",
        "graph-agent tasks add 'summarise what changed since yesterday' --at 07:00 --every 1d",
        "graph-agent tasks add - --mode acceptEdits --max-steps 50 < task.md",
        "graph-agent tasks add 'make the tests pass' --repo https://git.example/shop.git --revision main",
    ),
    "tasks list": ("graph-agent tasks list", "graph-agent tasks list --json"),
    "tasks show": ("graph-agent tasks show 1a2b3c4d",),
    "tasks cancel": ("graph-agent tasks cancel 1a2b3c4d",),
    "tasks retry": ("graph-agent tasks retry 1a2b3c4d",),
    "db copy": (
        "graph-agent db copy ~/.local/share/graph-agent/graph-agent.db postgresql://ada@db.example/agents",
        "graph-agent db copy postgresql://ada@db.example/agents copy.db",
    ),
    "worktrees list": ("graph-agent worktrees list",),
    "worktrees remove": ("graph-agent worktrees remove fix-the-parser-3f9c21",),
    "threads list": ("graph-agent threads list", "graph-agent threads list --json"),
    "threads show": ("graph-agent threads show shop", "graph-agent threads show shop --full"),
    "threads diff": ("graph-agent threads diff", "graph-agent threads diff shop > shop.patch"),
    "threads prune": ("graph-agent threads prune shop --keep 10", "graph-agent threads prune --older-than 30d"),
    "threads search": ("graph-agent threads search 'line ends'",),
    "threads rename": ("graph-agent threads rename shop 'The shop'",),
    "threads say": ("graph-agent threads say shop 'use the old names'",),
    "threads delete": ("graph-agent threads delete shop", "graph-agent threads delete shop shop-2 --yes"),
    "threads export": (
        "graph-agent threads export shop --output shop.json",
        "graph-agent threads export shop --output shop.html",
        "graph-agent threads export shop --format md",
    ),
    "threads import": ("graph-agent threads import shop.json --as shop-2",),
    "approvals list": ("graph-agent approvals list", "graph-agent approvals list --risk high --older-than 10m"),
    "approvals approve": (
        "graph-agent approvals approve 1a2b3c4d",
        "graph-agent approvals approve 1a2b3c4d --always --scope project",
    ),
    "approvals reject": ("graph-agent approvals reject 1a2b3c4d --reason 'not on main'",),
    "approvals edit": ("""graph-agent approvals edit 1a2b3c4d --arguments '{"command": "make test"}'""",),
    "approvals answer": ("graph-agent approvals answer 1a2b3c4d 'the second one'",),
    "policy list": ("graph-agent policy list",),
    "policy revoke": ("graph-agent policy revoke 3",),
    "policy check": ("graph-agent policy check bash 'git push' --mode auto",),
    "policy test": ("graph-agent policy test cases.jsonl",),
    "policy show": ("graph-agent policy show --mode acceptEdits",),
    "tools list": ("graph-agent tools list", "graph-agent tools list --mode plan"),
    "tools show": ("graph-agent tools show bash",),
    "tools stats": ("graph-agent tools stats",),
    "agents list": ("graph-agent agents list",),
    "agents show": ("graph-agent agents show reviewer",),
    "memory show": ("graph-agent memory show",),
    "memory edit": ("graph-agent memory edit",),
    "memory forget": ("graph-agent memory forget 2",),
    "memory undo": ("graph-agent memory undo",),
    "config show": ("graph-agent config show",),
    "config path": ("graph-agent config path",),
    "config set": (
        "graph-agent config set mode acceptEdits",
        """graph-agent config set policy.allow '["bash(git status*)"]'""",
    ),
    "config trust": ("graph-agent config trust", "graph-agent config trust --list"),
    "config explain": ("graph-agent config explain model.name",),
    "mcp list": ("graph-agent mcp list",),
    "mcp add": (
        "graph-agent mcp add notes -- notes-server --stdio",
        "graph-agent mcp add docs --url https://mcp.example.com/mcp",
        "graph-agent mcp add --from .mcp.json",
    ),
    "mcp remove": ("graph-agent mcp remove notes",),
    "mcp trust": ("graph-agent mcp trust notes",),
    "mcp login": ("graph-agent mcp login github",),
    "mcp logout": ("graph-agent mcp logout github",),
    "mcp test": ("graph-agent mcp test notes",),
    "model local": ("graph-agent model local tiny.gguf", "graph-agent model local --off"),
    "model list": ("graph-agent model list",),
    "model use": ("graph-agent model use gpt-4.1-mini",),
    "model show": ("graph-agent model show",),
    "model forget": ("graph-agent model forget fast",),
    "model test": ("graph-agent model test", "graph-agent model test fast --yes"),
}
"""By the command's path without the program's name; a test runs each of them."""


def find_examples(path: str) -> tuple[str, ...]:
    """The examples of the command with this path, whose first word is the program; empty for an unknown one."""
    return EXAMPLES.get(path.partition(" ")[2], ())


def describe_exit_codes() -> str:
    """Every exit code with its meaning, on one line."""
    return ", ".join(f"{code.value} {meaning}" for code, meaning in MEANINGS.items())


def resolve_database(flag: str | None) -> Path:
    """The database of the flag, the environment or the data folder."""
    from graph_agent.config.paths import database_path  # late: help needs no paths

    return database_path(os.environ, flag)


def default_workspace(flag: str | None) -> str | None:
    """The folder whose newest thread a missing id means. None if a database was named: then it is any folder's."""
    return None if flag else str(Path.cwd())
