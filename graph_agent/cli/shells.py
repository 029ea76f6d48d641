"""What makes a shell ask this program for completions: a script for each, shown or installed.

The scripts hand over the words and insert what comes back as it is: nothing of it is evaluated.
"""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from graph_agent.cli.completing import FILES, Offer
from graph_agent.cli.escape import escape
from graph_agent.config.paths import data_dir
from graph_agent.config.private import make_private_folder
from graph_agent.config.writing import replace_text
from graph_agent.errors import StorageError, UsageError

__all__ = ["SHELLS", "install_script", "show_script", "tell_offers"]

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
