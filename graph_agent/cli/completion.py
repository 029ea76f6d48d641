"""Shell completion: the values that Typer offers for each parameter, and the scripts of the shells.

Typer's own scripts evaluate what comes back (zsh) or insert it unquoted (bash). Titles and ids of imported threads
come from elsewhere, so the scripts here insert everything as text.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from typer._click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from graph_agent.cli.views.table import print_text
from graph_agent.config.paths import data_dir, database_path, make_private_folder, replace_text
from graph_agent.errors import AgentError, StorageError, UsageError
from graph_agent.wording import escape

if TYPE_CHECKING:
    from graph_agent.config.settings import Settings
    from graph_agent.inspect import CallView, Reader


__all__ = [
    "FREE_TEXT",
    "SCRIPTS",
    "SOURCES",
    "LineCompletion",
    "complete_parameter",
    "install_script",
    "print_completions",
    "print_script",
]

_MAX_IDS = 100
"""Limit on the ids that are offered before anything is typed."""

Source = Callable[[Path, str], Iterable[CompletionItem]]
"""Takes the database and the typed part of a value."""


def print_completions(program: Any, arguments: Sequence[str], *, is_line: bool) -> None:
    """Print the completions, one per line: the value, a tab, its help text.

    Args:
        arguments: the words up to the cursor, beginning with the program's name; with `is_line`, as bash asks, one
            word that holds the whole line.
    """
    text = LineCompletion(program, arguments, is_line=is_line).complete()
    sys.stdout.write(f"{text}\n" if text else "")


class LineCompletion(ShellComplete):
    """Typer's completion, with the protocol of the scripts below."""

    name = "graph-agent"
    source_template = ""

    def __init__(self, program: Any, arguments: Sequence[str], *, is_line: bool) -> None:
        super().__init__(program, {}, "graph-agent", "_GRAPH_AGENT_COMPLETE")
        self._is_line = is_line
        self._words = list(arguments)
        if is_line:
            line = "".join(arguments)
            self._words = words = split_arg_string(line)
            if not words or (line[-1:].isspace() and not words[-1][-1:].isspace()):
                words.append("")  # The cursor is on a new word.

    def source_vars(self) -> dict[str, Any]:
        """Nothing: the scripts below are not templates."""
        return {}

    def get_completion_args(self) -> tuple[list[str], str]:
        """The complete words, and the incomplete last one."""
        *complete, incomplete = self._words[1:] or [""]
        return complete, incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The completions; the value of `--name=value` comes with its name, because the shells replace the word."""
        name, sign, _ = incomplete.partition("=")
        items = super().get_completions(list(args), incomplete)
        if not sign or not incomplete.startswith("-") or "--" in args:
            return items
        return [
            item if item.type == "file" else CompletionItem(f"{name}={item.value}", help=item.help)
            for item in items
        ]

    def format_completion(self, item: CompletionItem) -> str:
        """One line; `:files` stands for file names, which the shell completes."""
        if item.type == "file":
            return ":files"
        value = shlex.quote(item.value) if self._is_line else item.value
        return f"{value}\t{escape(item.help)}" if item.help else value


def complete_parameter(context: Any, name: str, typed: str) -> list[CompletionItem] | None:
    """The values of a parameter that begin, else end, with what was typed. None: Typer knows its values itself.

    Reads the database and the settings, never the network. Whatever cannot be read is offered nothing from.
    """
    group = context.parent.info_name if context.parent else ""
    source = SOURCES.get(f"{group} {name}") or SOURCES.get(name)
    if source is None:
        return None
    try:
        items = list(source(database_path(os.environ, context.params.get("db")), typed))
    except (AgentError, OSError):
        return []
    items = [item for item in items if item.type == "file" or item.value == escape(item.value)]
    matches = [item for item in items if item.type == "file" or item.value.startswith(typed)]
    return matches or [item for item in items if len(typed) > 1 and item.value.endswith(typed)]


# What follows imports late: a command is completed without the reader, an id without settings and tools.


def _open(database: Path) -> "Reader":
    from graph_agent.app.reader import read_database

    return read_database(database)


def _threads(database: Path, typed: str) -> Iterator[CompletionItem]:
    with _open(database) as reader:
        ids = list(reader.workspaces())
        # There may be thousands: only the threads that are offered are read in full.
        found = [one for one in ids if one.startswith(typed)] or [one for one in ids if one.endswith(typed)]
        threads = reader.family(*(found if typed else found[:_MAX_IDS])) if found else ()
    for thread in threads:
        if not thread.is_abandoned:
            yield CompletionItem(thread.thread_id, help=f"{thread.title or 'no title'} ({thread.status})")


def _checkpoints(database: Path, typed: str) -> Iterator[CompletionItem]:
    with _open(database) as reader:
        yield from (CompletionItem(one.id, help=one.title) for one in reader.suggest_checkpoints(typed, _MAX_IDS))


def _threads_and_checkpoints(database: Path, typed: str) -> Iterator[CompletionItem]:
    yield from _threads(database, typed)
    if typed:
        yield from _checkpoints(database, typed)


def _calls(find: "Callable[[Reader], Iterable[CallView]]", *more: CompletionItem) -> Source:
    """Offers the calls that the function finds, and these items."""

    def offer(database: Path, _: str) -> Iterator[CompletionItem]:
        from graph_agent.inspect import call_name

        with _open(database) as reader:
            shared = reader.shared_call_ids()
            for view in find(reader):
                name = call_name(view.thread_id, view.record["call_id"], shared)
                yield CompletionItem(name, help=str(view.record.get("summary") or view.record["tool_name"]))
        yield from more

    return offer


def _waiting(reader: "Reader") -> "Iterator[CallView]":
    return (view for view in reader.approvals() if view.is_waiting)


_waiting_calls = _calls(_waiting)
_waiting_calls_or_all = _calls(_waiting, CompletionItem("all", help="all approvals that are pending at the start"))
_interrupted_calls = _calls(lambda reader: (view for view in reader.interrupted() if view.is_interrupted))


def _tasks(database: Path, _: str) -> Iterator[CompletionItem]:
    from graph_agent.worker.tasks import list_tasks

    for view in list_tasks(database)[:_MAX_IDS]:
        yield CompletionItem(view.task.task_id, help=f"{' '.join(view.task.prompt.split())} ({view.status})")


def _worktrees(_: Path, __: str) -> Iterator[CompletionItem]:
    from graph_agent.worker.worktrees import list_worktrees

    yield from (CompletionItem(one.branch, help=str(one.path)) for one in list_worktrees(Path.cwd()))


def _grants(database: Path, _: str) -> Iterator[CompletionItem]:
    with _open(database) as reader:
        yield from (CompletionItem(str(grant.id), help=", ".join(grant.rules)) for grant in reader.grants())


def _used_tools(database: Path, _: str) -> Iterator[CompletionItem]:
    with _open(database) as reader:
        yield from (CompletionItem(one.tool) for one in reader.statistics())


def _settings() -> "Settings":
    """The user's settings, without those of a project."""
    from graph_agent.config.sources import load_settings

    return load_settings(os.environ)


def _models(database: Path, _: str) -> Iterator[CompletionItem]:
    """The profiles, the configured model, and the models that threads used."""
    settings = _settings()
    yield from (CompletionItem(name, help="profile") for name in settings.models)
    names = [settings.model.name] if settings.model.name else []
    try:
        with _open(database) as reader:
            names += [thread.model.partition(" @ ")[0] for thread in reader.threads() if " @ " in thread.model]
    except (AgentError, OSError):
        pass
    yield from (CompletionItem(name) for name in dict.fromkeys(names) if name not in settings.models)


def _tools(_: Path, __: str) -> Iterator[CompletionItem]:
    from asyncio import run

    from graph_agent.app.tool_catalog import load_tool_catalog

    settings = _settings()
    catalog = run(load_tool_catalog(Path.cwd(), settings, settings.mode))
    yield from (CompletionItem(tool.name, help=tool.description) for tool in catalog.tools)


def _agents(_: Path, __: str) -> Iterator[CompletionItem]:
    from graph_agent.app.named_agents import load_agents
    from graph_agent.app.project_trust import settings_at

    agents = load_agents(settings_at(Path.cwd()), os.environ, ())
    yield from (CompletionItem(agent.name, help=agent.description) for agent in agents.values())


def _keys(_: Path, __: str) -> Iterator[CompletionItem]:
    from graph_agent.config.settings import known_keys

    yield from map(CompletionItem, known_keys())


def _modes(_: Path, __: str) -> Iterator[CompletionItem]:
    from graph_agent.config.settings import Mode

    yield from map(CompletionItem, get_args(Mode))


def _efforts(_: Path, __: str) -> Iterator[CompletionItem]:
    from graph_agent.config.settings import ModelSettings

    yield from map(CompletionItem, get_args(ModelSettings.model_fields["effort"].annotation))


def _servers(_: Path, __: str) -> Iterator[CompletionItem]:
    yield from map(CompletionItem, _settings().mcp_servers)


def _call_statuses(_: Path, __: str) -> Iterator[CompletionItem]:
    from graph_agent.inspect import CALL_WORDS

    yield from map(CompletionItem, CALL_WORDS)


def _thread_statuses(_: Path, __: str) -> Iterator[CompletionItem]:
    from graph_agent.inspect import ThreadStatus

    yield from map(CompletionItem, get_args(ThreadStatus))


def _words(*words: str) -> Source:
    return lambda _, __: map(CompletionItem, words)


def _files(_: Path, typed: str) -> Iterable[CompletionItem]:
    return [CompletionItem(typed, type="file")]


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
