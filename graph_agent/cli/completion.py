"""Shell completion: what Typer finds where the cursor is, and the scripts of the shells.

Typer's own scripts evaluate what comes back (zsh) or insert it unquoted (bash). Titles and ids of imported threads
come from elsewhere, so the scripts here insert everything as text.
"""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typer._click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from graph_agent.cli.completion_values import FILES, SOURCES, Value, find_values
from graph_agent.cli.views.table import print_text
from graph_agent.config.paths import data_dir, make_private_folder, replace_text
from graph_agent.errors import StorageError, UsageError

__all__ = ["SCRIPTS", "LineCompletion", "complete_parameter", "install_script", "print_completions", "print_script"]


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
        """One line."""
        value = FILES if item.type == "file" else Value(item.value, item.help or "")
        return value.as_line(is_quoted=self._is_line)


def complete_parameter(context: Any, name: str, typed: str) -> list[CompletionItem] | None:
    """The values of a parameter that fit what was typed. None: Typer knows its values itself."""
    group = context.parent.info_name if context.parent else ""
    source = SOURCES.get(f"{group} {name}") or SOURCES.get(name)
    if source is None:
        return None
    return [
        CompletionItem(typed, type="file") if one == FILES else CompletionItem(one.value, help=one.help)
        for one in find_values(source, context.params.get("db"), typed)
    ]


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
