"""Shell completion: the values that are offered for each parameter, and the scripts of the shells.

Typer's own scripts evaluate what comes back (zsh) or insert it unquoted (bash). Titles and ids of imported threads
come from elsewhere, so the scripts here insert everything as text.

An id is completed without Typer, see `complete_id`. Each source imports what it needs when it is asked. It reads
the database and the settings, never the network.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

from graph_agent.config.paths import data_dir, database_path, make_private_folder, replace_text
from graph_agent.errors import AgentError, StorageError, UsageError
from graph_agent.wording import escape, format_age

if TYPE_CHECKING:
    from graph_agent.config.settings import Settings
    from graph_agent.inspect import CallView, Reader

__all__ = [
    "FILES",
    "FREE_TEXT",
    "ID_ARGUMENTS",
    "ID_OPTIONS",
    "SCRIPTS",
    "SOURCES",
    "Value",
    "complete_id",
    "find_values",
    "install_script",
    "print_script",
]

_MAX_IDS = 100
"""Limit on the ids that are offered before anything is typed."""
_ALL_IDS = 1_000_000_000
"""More than there can be: a limit that limits nothing, as SQLite and PostgreSQL both take it."""


class Value(NamedTuple):
    """A value with its help text; `:files` stands for file names, which the shell completes."""

    value: str
    help: str = ""

    def as_line(self, *, is_quoted: bool) -> str:
        """The line that the scripts of the shells read."""
        if self == FILES:
            return self.value
        value = shlex.quote(self.value) if is_quoted else self.value
        return f"{value}\t{escape(self.help)}" if self.help else value


FILES = Value(":files")

Source = Callable[[Path, str], Iterable[Value]]
"""Takes the database and the typed part of a value."""


def complete_id(asked: str, arguments: Sequence[str]) -> str | None:
    """The lines for an id, before the parser is loaded, which takes longer than reading ids does.

    Args:
        asked: how the shell asks: with a `line` up to the cursor, or with its `words`.
        arguments: the line as one word, or the words up to the cursor, beginning with the program's name.

    Returns:
        None, for the parser to complete it, unless the last word comes directly after a command or an option that
        takes an id.
    """
    words = list(arguments)
    if asked == "line":
        line = "".join(arguments)
        words = [*line.split(), ""] if line[-1:] == " " else line.split()
        if not _PLAIN_LINE.fullmatch(line):
            return None
    source = _id_source(words[1:-1]) if len(words) > 1 else None
    if source is None or words[-1].startswith("-"):
        return None
    found = find_values(source, None, words[-1])
    return "".join(f"{one.as_line(is_quoted=asked == 'line')}\n" for one in found)


_PLAIN_LINE = re.compile(r"[\w ./:@,+=-]*", re.ASCII)
"""A line whose words are separated by spaces alone."""


def _id_source(before: Sequence[str]) -> "Source | None":
    """What offers the ids that may follow these words."""
    if argument := ID_ARGUMENTS.get(" ".join(before)):
        return SOURCES[argument]
    *earlier, option = before or [""]
    # Behind another option this one may be its value; behind `--` it is none.
    if "--" in earlier or (earlier and earlier[-1].startswith("-")):
        return None
    command = next((name for name in (" ".join(earlier[:2]), *earlier[:1]) if name in ID_OPTIONS), "")
    if not command and earlier:
        return None
    return SOURCES[ID_OPTIONS[command][option]] if option in ID_OPTIONS[command] else None


_SESSION_IDS = {
    **dict.fromkeys(("-r", "--resume"), "resume"),
    **{f"--{name}": name for name in ("thread", "approve", "reject")},
}
ID_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "": _SESSION_IDS,
    "run": _SESSION_IDS,
    "chat": {name: source for name, source in _SESSION_IDS.items() if source in ("resume", "thread")},
    "recover": {f"--{name}": name for name in ("retry", "done", "cancel")},
    "approvals list": {"--thread": "thread"},
}
"""The options of each command that take an id, with the names of their sources; "" is a line without a command."""

ID_ARGUMENTS: Mapping[str, str] = {
    "resume": "identifier",
    **dict.fromkeys(("inspect", "graph"), "target"),
    **dict.fromkeys(("fork", "rewind"), "checkpoint"),
    "diff": "old",
    **dict.fromkeys(("compact", "calls", "recover", "history"), "thread"),
    **{f"threads {name}": "thread" for name in ("show", "diff", "prune", "rename", "say", "export")},
    "threads delete": "threads",
    **{f"tasks {name}": "task" for name in ("show", "cancel", "retry")},
    **{f"approvals {name}": "call" for name in ("approve", "reject", "answer", "edit")},
    "policy revoke": "grant",
}
"""The commands whose first argument is an id, with the name of its source."""


def find_values(source: Source, database: str | None, typed: str) -> list[Value]:
    """The values that begin, else end, with what was typed.

    What cannot be read offers nothing.

    Args:
        source: one of `SOURCES`.
        database: the file or URL that the line names; None for the usual one.
        typed: the beginning or the end of a value.
    """
    try:
        values = list(source(database_path(os.environ, database), typed))
    except (AgentError, OSError):
        return []
    values = [one for one in values if one.value == escape(one.value)]
    matches = [one for one in values if one == FILES or one.value.startswith(typed)]
    return matches or [one for one in values if len(typed) > 1 and one.value.endswith(typed)]


# What follows imports late: a command is completed without the reader, an id without settings and tools.


def _open(database: Path) -> "Reader":
    from graph_agent.app.reader import read_database

    return read_database(database)


def _threads(database: Path, typed: str) -> Iterator[Value]:
    from graph_agent.app.reader import suggest_threads

    # All that fit what was typed: a shell completes the beginning that they have in common.
    for thread in suggest_threads(database, typed, _ALL_IDS if typed else _MAX_IDS):
        state = "" if thread.is_idle else ", unfinished"
        yield Value(thread.thread_id, f"{thread.title or 'no title'} ({format_age(thread.updated_at)}{state})")


def _checkpoints(database: Path, typed: str) -> Iterator[Value]:
    from graph_agent.app.reader import suggest_checkpoints

    for found in suggest_checkpoints(database, typed, _MAX_IDS):
        yield Value(found.checkpoint_id, found.title or found.thread_id)


def _threads_and_checkpoints(database: Path, typed: str) -> Iterator[Value]:
    yield from _threads(database, typed)
    if typed:
        yield from _checkpoints(database, typed)


def _calls(find: "Callable[[Reader], Iterable[CallView]]", *more: Value) -> Source:
    """Offers the calls that the function finds, and these items."""

    def offer(database: Path, _: str) -> Iterator[Value]:
        from graph_agent.inspect import call_name

        with _open(database) as reader:
            shared = reader.shared_call_ids()
            for view in find(reader):
                name = call_name(view.thread_id, view.record["call_id"], shared)
                yield Value(name, help=str(view.record.get("summary") or view.record["tool_name"]))
        yield from more

    return offer


def _waiting(reader: "Reader") -> "Iterator[CallView]":
    return (view for view in reader.approvals() if view.is_waiting)


_waiting_calls = _calls(_waiting)
_waiting_calls_or_all = _calls(_waiting, Value("all", help="all approvals that are pending at the start"))
_interrupted_calls = _calls(lambda reader: (view for view in reader.interrupted() if view.is_interrupted))


def _tasks(database: Path, _: str) -> Iterator[Value]:
    from graph_agent.worker.tasks import list_tasks

    for view in list_tasks(database)[:_MAX_IDS]:
        yield Value(view.task.task_id, help=f"{' '.join(view.task.prompt.split())} ({view.status})")


def _worktrees(_: Path, __: str) -> Iterator[Value]:
    from graph_agent.worker.worktrees import list_worktrees

    yield from (Value(one.branch, help=str(one.path)) for one in list_worktrees(Path.cwd()))


def _grants(database: Path, _: str) -> Iterator[Value]:
    with _open(database) as reader:
        yield from (Value(str(grant.id), help=", ".join(grant.rules)) for grant in reader.grants())


def _used_tools(database: Path, _: str) -> Iterator[Value]:
    with _open(database) as reader:
        yield from (Value(one.tool) for one in reader.statistics())


def _settings() -> "Settings":
    """The user's settings, without those of a project."""
    from graph_agent.config.sources import load_settings

    return load_settings(os.environ)


def _models(database: Path, _: str) -> Iterator[Value]:
    """The profiles, the configured model, and the models that threads used."""
    settings = _settings()
    yield from (Value(name, help="profile") for name in settings.models)
    names = [settings.model.name] if settings.model.name else []
    try:
        with _open(database) as reader:
            names += [thread.model.partition(" @ ")[0] for thread in reader.threads() if " @ " in thread.model]
    except (AgentError, OSError):
        pass
    yield from (Value(name) for name in dict.fromkeys(names) if name not in settings.models)


def _tools(_: Path, __: str) -> Iterator[Value]:
    from asyncio import run

    from graph_agent.app.tool_catalog import load_tool_catalog

    settings = _settings()
    catalog = run(load_tool_catalog(Path.cwd(), settings, settings.mode))
    yield from (Value(tool.name, help=tool.description) for tool in catalog.tools)


def _agents(_: Path, __: str) -> Iterator[Value]:
    from graph_agent.app.named_agents import load_agents
    from graph_agent.app.project_trust import settings_at

    agents = load_agents(settings_at(Path.cwd()), os.environ, ())
    yield from (Value(agent.name, help=agent.description) for agent in agents.values())


def _keys(_: Path, __: str) -> Iterator[Value]:
    from graph_agent.config.settings import known_keys

    yield from map(Value, known_keys())


def _modes(_: Path, __: str) -> Iterator[Value]:
    from graph_agent.config.settings import Mode

    yield from map(Value, get_args(Mode))


def _efforts(_: Path, __: str) -> Iterator[Value]:
    from graph_agent.config.settings import ModelSettings

    yield from map(Value, get_args(ModelSettings.model_fields["effort"].annotation))


def _servers(_: Path, __: str) -> Iterator[Value]:
    yield from map(Value, _settings().mcp_servers)


def _call_statuses(_: Path, __: str) -> Iterator[Value]:
    from graph_agent.inspect import CALL_WORDS

    yield from map(Value, CALL_WORDS)


def _thread_statuses(_: Path, __: str) -> Iterator[Value]:
    from graph_agent.inspect import ThreadStatus

    yield from map(Value, get_args(ThreadStatus))


def _words(*words: str) -> Source:
    return lambda _, __: map(Value, words)


def _files(_: Path, __: str) -> Iterable[Value]:
    return [FILES]


SOURCES: Mapping[str, Source] = {
    "thread": _threads,
    "threads": _threads,
    "resume": _threads_and_checkpoints,
    "identifier": _threads_and_checkpoints,
    "target": _threads_and_checkpoints,
    "checkpoint": _checkpoints,
    "old": _checkpoints,
    "new": _checkpoints,
    "approve": _waiting_calls_or_all,
    "reject": _waiting_calls_or_all,
    "call": _waiting_calls,
    "retry": _interrupted_calls,
    "done": _interrupted_calls,
    "cancel": _interrupted_calls,
    "grant": _grants,
    "model": _models,
    "model name": _models,
    "key": _keys,
    "tool": _used_tools,
    "policy tool": _tools,
    "tools name": _tools,
    "agent": _agents,
    "agents name": _agents,
    "mcp name": _servers,
    "task": _tasks,
    "worktrees name": _worktrees,
    "effort": _efforts,
    "notify": _words("desktop"),
    "mode": _modes,
    "everything": _words("retry", "done", "cancel"),
    "status": _call_statuses,
    "until": _thread_statuses,
    "risk": _words("low", "medium", "high"),
    "format_name": _words("terminal", "mermaid"),
    "install_completion": _words("bash", "zsh", "fish"),
    "show_completion": _words("bash", "zsh", "fish"),
    **dict.fromkeys(("workspace", "add_dir", "db", "output", "backup", "file", "folder", "command"), _files),
    **dict.fromkeys(("source", "image", "json_schema"), _files),
}
"""By the name of the parameter, or by its group and its name."""

FREE_TEXT = frozenset(
    (
        *(
            "allow_host",
            "arguments",
            "as_id",
            "copy_from",
            "copy_to",
            "at",
            "env",
            "every",
            "grace",
            "header",
            "host",
            "host_label",
            "max_size",
            "message",
            "number",
            "older_than",
            "path",
            "prompt",
            "reason",
            "repo",
            "revision",
        ),
        *("result", "text", "title", "url", "value"),
    )
)
"""Parameters that take any text, without completion."""

_BASH = r"""
_graph_agent() {
    local line="${COMP_LINE:0:COMP_POINT}" value about typed cut
    COMPREPLY=()
    while IFS=$'\t' read -r value about; do
        if [ "$value" = ":files" ]; then
            compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$2"))
            return
        fi
        COMPREPLY+=("$value")
    done < <(_GRAPH_AGENT_COMPLETE=line "$1" "$line" 2>/dev/null)
    # Readline takes what follows the last : or = for the word to replace.
    typed="${line##* }"
    cut="${typed%"${typed##*[:=]}"}"
    [ -n "$cut" ] && COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}
complete -F _graph_agent graph-agent
"""

_ZSH = r"""
#compdef graph-agent
_graph_agent() {
    local value about
    local -a found shown
    while IFS=$'\t' read -r value about; do
        if [[ $value == ":files" ]]; then
            _files
            return
        fi
        found+=("$value")
        shown+=("$value${about:+  -- $about}")
    done < <(_GRAPH_AGENT_COMPLETE=words "${(Q)words[1]}" "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
    (( $#found )) && compadd -U -l -d shown -a found
}
if [[ $funcstack[1] == _graph_agent ]]; then
    _graph_agent "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _graph_agent graph-agent
fi
"""

_FISH = r"""
function __graph_agent_complete
    set -l typed (commandline -ct)
    set -lx _GRAPH_AGENT_COMPLETE words
    set -l found (graph-agent (commandline -opc) "$typed" 2>/dev/null)
    if test "$found" = ":files"
        __fish_complete_path "$typed"
    else
        printf '%s\n' $found
    end
end
complete --command graph-agent --no-files --arguments "(__graph_agent_complete)"
"""

SCRIPTS: Mapping[str, str] = {"bash": _BASH.strip(), "zsh": _ZSH.strip(), "fish": _FISH.strip()}
"""The completion script of each shell."""


def print_script(shell: str) -> None:
    """Print the completion script of a shell, by default of the current one.

    Raises:
        UsageError: the shell is not supported.
    """
    sys.stdout.write(f"{SCRIPTS[_require_shell(shell)]}\n")


def install_script(shell: str) -> None:
    """Write the completion script of a shell, and have bash and zsh load it at start.

    Raises:
        UsageError: the shell is not supported.
        StorageError: a file cannot be written.
    """
    from graph_agent.cli.views.table import print_text

    name = _require_shell(shell)
    home = Path(os.environ.get("HOME") or Path.home())
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    try:
        if name == "fish":
            script = config / "fish/completions/graph-agent.fish"
            script.parent.mkdir(parents=True, exist_ok=True)
        else:
            script = data_dir(os.environ) / f"completion.{name}"
            make_private_folder(script.parent)
        replace_text(script, f"{SCRIPTS[name]}\n")
        print_text(f"Wrote {script}.")
        if name != "fish":
            start = home / ".bashrc" if name == "bash" else Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
            line = f"source {shlex.quote(str(script))}"
            text = start.read_text(encoding="utf-8", errors="surrogateescape") if start.exists() else ""
            if line not in text.splitlines():
                with start.open("a", encoding="utf-8") as file:
                    file.write(f"{line}\n" if not text or text.endswith("\n") else f"\n{line}\n")
                print_text(f"Added to {start}: {line}")
            print_text("Completion works in every shell that you start from now on.")
    except OSError as error:
        raise StorageError(f"Cannot write {error.filename}: {error.strerror}.") from error


def _require_shell(shell: str) -> str:
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SCRIPTS:
        raise UsageError(f"No completion for the shell {name!r}. Choose one of: {', '.join(SCRIPTS)}.")
    return name
