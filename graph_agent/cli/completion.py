"""Completion in a shell: what can stand where the cursor is.

Walks the commands as the command line declares them; whence the values of a parameter come is known to `offers`.

What values the parameters of the commands take, as far as that can be known while somebody types.

Reads the database and the settings, in silence: what cannot be read offers nothing. Never asks a network.

What makes a shell ask this program for completions: a script for each, shown or installed.

The scripts hand over the words and insert what comes back as it is: nothing of it is evaluated.
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from graph_agent.calls import STATUSES
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.calls import call_name
from graph_agent.config.paths import data_dir, database_path, make_private_folder, replace_text
from graph_agent.errors import AgentError, StorageError, UsageError
from graph_agent.inspect import CallView, Reader, ThreadStatus

if TYPE_CHECKING:
    from graph_agent.config.settings import Settings


__all__ = [
    "FILES",
    "FREE",
    "SHELLS",
    "SOURCES",
    "Offer",
    "Values",
    "install_script",
    "offered",
    "show_script",
    "split_line",
    "tell_offers",
    "values",
]


class Offer(NamedTuple):
    """One word to choose."""

    value: str
    about: str = ""
    """What it means, in one line."""


FILES = Offer(":files")
"""Stands alone: the shell itself completes the name of a file."""

Values = Callable[[Sequence[str], str, str, Mapping[str, str]], Sequence[Offer]]
"""Takes the words of a command, the name of a parameter, what was typed of its value, and the options given."""


@dataclass
class _Line:
    """What stands before the cursor, as far as it was understood."""

    command: Any
    path: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    """Options by the name of their parameter."""
    taken: int = 0
    """Arguments that are there already."""
    awaiting: Any = None
    """The option whose value comes next."""
    is_literal: bool = False
    """After --, no word is an option any more."""

    def read(self, word: str) -> None:
        """Take in one word."""
        is_option = not self.is_literal and word.startswith("-") and len(word) > 1
        if self.awaiting is not None and not is_option:
            self.given[self.awaiting.name] = word
            self.awaiting = None
        elif is_option:
            self._read_option(word)
        elif (inner := getattr(self.command, "commands", {}).get(word)) is not None:
            self.command = inner
            self.path.append(word)
        else:
            self.taken += 1

    def _read_option(self, word: str) -> None:
        name, sign, value = word.partition("=")
        self.is_literal = word == "--"
        found = next((one for one in _options(self.command) if name in one.opts), None)
        self.awaiting = found if found is not None and not found.is_flag and not sign else None
        if found is not None:
            self.given[found.name] = value


def split_line(line: str) -> list[str]:
    """The words of a line up to the cursor, the last one unfinished or empty; an open quote ends where it does."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=False)
    reader.whitespace_split, reader.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(reader)
    except ValueError:
        return [*words, reader.token]
    return [*words, ""] if not line or line[-1].isspace() else words


def offered(program: Any, words: Sequence[str], values: Values) -> list[Offer]:
    """What may stand in place of the last of these words, which come after the program's name.

    Words that begin with what was typed go before those that only end with it, as ids may be typed.
    """
    *before, typed = words or [""]
    line = _Line(program)
    for word in before:
        line.read(word)
    name, sign, value = typed.partition("=")
    option = next((one for one in _options(line.command) if sign and name in one.opts), None)
    if option is not None:
        found = _fitting(_values(line, option, value, values), value)
        return [one if one is FILES else Offer(f"{name}={one.value}", one.about) for one in found]
    if line.awaiting is None and typed.startswith("-") and not line.is_literal:
        return _fitting(_option_names(line), typed)
    if line.awaiting is None and (commands := getattr(line.command, "commands", {})):
        return _fitting([Offer(word, _summary(one)) for word, one in commands.items()], typed)
    parameter = line.awaiting or _argument(line)
    return _fitting(_values(line, parameter, typed, values), typed) if parameter is not None else []


def _options(command: Any) -> Iterator[Any]:
    return (one for one in command.params if one.param_type_name == "option")


def _argument(line: _Line) -> Any:
    arguments = [one for one in line.command.params if one.param_type_name == "argument"]
    if line.taken < len(arguments):
        return arguments[line.taken]
    return arguments[-1] if arguments and arguments[-1].nargs == -1 else None


def _option_names(line: _Line) -> list[Offer]:
    names = [
        Offer(name, one.help or "")
        for one in _options(line.command)
        if one.multiple or one.name not in line.given
        for name in one.opts
    ]
    return [*names, Offer("--help", "Show this message and exit.")]


def _values(line: _Line, parameter: Any, typed: str, values: Values) -> Sequence[Offer]:
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [Offer(str(one.value)) for one in kind]
    return values(line.path, parameter.name, typed, line.given)


def _fitting(found: Sequence[Offer], typed: str) -> list[Offer]:
    if list(found) == [FILES]:
        return [FILES]
    begin = [one for one in found if one.value.startswith(typed)]
    return begin or [one for one in found if len(typed) > 1 and one.value.endswith(typed)]


def _summary(command: Any) -> str:
    return str(command.get_short_help_str())


_MOST = 100
"""So many ids are offered before anything of one was typed."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was typed of a value, and where ids are looked up."""

    typed: str
    database: Path


def values(path: Sequence[str], name: str, typed: str, given: Mapping[str, str]) -> Sequence[Offer]:
    """What a parameter may be given; see `graph_agent.cli.completion`."""
    source = SOURCES.get(f"{path[0]} {name}" if path else "") or SOURCES.get(name)
    if source is None:
        return ()
    try:
        return tuple(source(_Wish(typed, database_path(os.environ, given.get("db")))))
    except (AgentError, OSError):
        return ()


def _threads(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        found = reader.threads()
    for thread in found if wish.typed else found[:_MOST]:
        yield Offer(thread.thread_id, f"{thread.title or 'no title'} ({thread.status})")


def _checkpoints(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from (Offer(one.id, one.title) for one in reader.suggest_checkpoints(wish.typed, _MOST))


def _both(wish: _Wish) -> Iterator[Offer]:
    yield from _threads(wish)
    if wish.typed:
        yield from _checkpoints(wish)


def _waiting(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from _named(reader, (one for one in reader.approvals() if one.is_waiting))


def _waiting_or_all(wish: _Wish) -> Iterator[Offer]:
    yield from _waiting(wish)
    yield Offer("all", "every call that waits at the start")


def _interrupted(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from _named(reader, (one for one in reader.interrupted() if one.is_interrupted))


def _named(reader: Reader, views: Iterable[CallView]) -> Iterator[Offer]:
    shared = reader.shared_call_ids()
    for view in views:
        record = view.record
        about = record.get("display") or record["tool_name"]
        yield Offer(call_name(view.thread_id, record["call_id"], shared), str(about))


def _grants(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from (Offer(str(one.id), ", ".join(one.rules)) for one in reader.grants())


def _models(wish: _Wish) -> Iterator[Offer]:
    """Profiles, the configured model, and those that threads were held with."""
    settings = _settings()
    yield from (Offer(name, "profile") for name in settings.models)
    named = [settings.model.name] if settings.model.name else []
    try:
        with Reader.open(wish.database) as reader:
            named += [thread.model.partition(" @ ")[0] for thread in reader.threads() if " @ " in thread.model]
    except (AgentError, OSError):
        pass
    yield from (Offer(name) for name in dict.fromkeys(named) if name not in settings.models)


def _keys(_: _Wish) -> Iterator[Offer]:
    # Loaded with the library that checks settings, which ids need not wait for.
    from graph_agent.config.keys import known_keys

    yield from (Offer(key) for key in known_keys())


def _tools(_: _Wish) -> Iterator[Offer]:
    # Loaded with all that the tools stand on, which ids need not wait for.
    from asyncio import run

    from graph_agent.app.tool_catalog import known_tools

    settings = _settings()
    known = run(known_tools(Path.cwd(), settings, settings.mode))
    yield from (Offer(tool.name) for tool in known.tools)


def _tools_used(wish: _Wish) -> Iterator[Offer]:
    with Reader.open(wish.database) as reader:
        yield from (Offer(one.tool) for one in reader.statistics())


def _modes(_: _Wish) -> Iterator[Offer]:
    # Loaded with the library that checks settings, which ids need not wait for.
    from graph_agent.config.settings import Mode

    yield from (Offer(mode) for mode in get_args(Mode))


def _servers(_: _Wish) -> Iterator[Offer]:
    yield from (Offer(name) for name in _settings().mcp_servers)


def _settings() -> "Settings":
    """The user's own: a project's file is looked at only where somebody works."""
    # Loaded with the library that checks settings, which ids need not wait for.
    from graph_agent.config.sources import load_settings

    return load_settings(os.environ)


def _words(*words: str) -> Callable[[_Wish], Iterable[Offer]]:
    return lambda _: [Offer(word) for word in words]


def _files(_: _Wish) -> Iterable[Offer]:
    return [FILES]


SOURCES: Mapping[str, Callable[[_Wish], Iterable[Offer]]] = {
    "thread": _threads,
    "threads": _threads,
    "resume": _both,
    "identifier": _both,
    "target": _both,
    "checkpoint": _checkpoints,
    "old": _checkpoints,
    "new": _checkpoints,
    "approve": _waiting_or_all,
    "reject": _waiting_or_all,
    "call": _waiting,
    "retry": _interrupted,
    "done": _interrupted,
    "cancel": _interrupted,
    "grant": _grants,
    "model": _models,
    "model name": _models,
    "key": _keys,
    "tool": _tools_used,
    "policy tool": _tools,
    "tools name": _tools,
    "mcp name": _servers,
    "mode": _modes,
    "everything": _words("retry", "done", "cancel"),
    "status": _words(*STATUSES),
    "until": _words(*get_args(ThreadStatus)),
    "risk": _words("low", "medium", "high"),
    "form": _words("terminal", "mermaid", "svg", "png"),
    **dict.fromkeys(
        ("workspace", "add_dir", "db", "output", "backup", "file", "folder", "command", "source"), _files
    ),
}
"""By the name of the parameter, with the group before it where the name alone says too little."""

FREE = frozenset(
    (
        "message",
        "prompt",
        "reason",
        "result",
        "path",
        "as_id",
        "older_than",
        "max_size",
        "text",
        "title",
        "arguments",
        "url",
        "env",
        "header",
        "value",
    )
)
"""Parameters that take any text, for which nothing can be offered."""

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

SHELLS: Mapping[str, str] = {"bash": _BASH.strip(), "zsh": _ZSH.strip(), "fish": _FISH.strip()}
"""The script of each shell."""


def tell_offers(offers: list[Offer], *, is_line: bool) -> None:
    """Print what may be typed, one a line, with what it means after a tab; `is_line` is how bash asks."""
    for one in offers:
        value = shlex.quote(one.value) if is_line and one is not FILES else one.value
        if value == escape(value):
            sys.stdout.write(f"{value}\t{escape(one.about)}\n" if one.about else f"{value}\n")


def show_script(shell: str) -> None:
    """Print the script of a shell, by default the user's own.

    Raises:
        UsageError: there is none for it.
    """
    sys.stdout.write(f"{SHELLS[_known(shell)]}\n")


def install_script(shell: str) -> None:
    """Write the script of a shell where it stays, have the shell read it when it starts, and say so.

    Raises:
        UsageError: there is none for it.
        StorageError: a file cannot be written.
    """
    name = _known(shell)
    home = Path(os.environ.get("HOME") or Path.home())
    try:
        if name == "fish":
            base = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
            script = base / "fish/completions/graph-agent.fish"
            script.parent.mkdir(parents=True, exist_ok=True)
            replace_text(script, f"{SHELLS[name]}\n")
            _tell(f"wrote {script}")
            return
        script = data_dir(os.environ) / f"completion.{name}"
        make_private_folder(script.parent)
        replace_text(script, f"{SHELLS[name]}\n")
        _tell(f"wrote {script}")
        start = home / ".bashrc" if name == "bash" else Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
        _source(script, start)
    except OSError as error:
        raise StorageError(f"{error.filename} cannot be written: {error.strerror}.") from error


def _source(script: Path, start: Path) -> None:
    line = f"source {shlex.quote(str(script))}"
    text = start.read_text(encoding="utf-8", errors="surrogateescape") if start.exists() else ""
    if line not in text.splitlines():
        with start.open("a", encoding="utf-8") as file:
            file.write(f"{'' if text.endswith(chr(10)) or not text else chr(10)}{line}\n")
        _tell(f"added to {start}: {line}")
    _tell("it counts in every shell that is started from now on")


def _known(shell: str) -> str:
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise UsageError(f"there is no completion for the shell {name!r}; name one of: {', '.join(SHELLS)}")
    return name


def _tell(line: str) -> None:
    sys.stdout.write(f"{escape(line)}\n")
