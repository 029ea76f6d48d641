"""Options, and small languages in arguments, by which a program that reads or shows comes to write or to run.

Programs that run what their words, their input or their variables say. Names only; nothing is read here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from posixpath import basename

__all__ = [
    "COMMANDING",
    "EVALUATING",
    "LANGUAGES",
    "RUN_BY_GIT",
    "RUN_FED",
    "RUN_HERE",
    "RUN_LATER",
    "SHELLS",
    "TAKING_CODE",
    "WRAPPERS",
    "WRAPS_AFTER",
    "dangerous_options",
    "spelled_out",
]

_LONG: Mapping[str, tuple[str, ...]] = {
    "git": (
        "output", "output-directory", "ext-diff", "textconv", "open-files-in-pager", "upload-pack", "receive-pack",
        "exec", "exec-path", "config", "config-env", "template", "extcmd", "paginate", "remote", "git-dir",
        "work-tree",
    ),
    "sort": ("output", "compress-program"),
    "sed": ("in-place", "file", "expression"),
    "rg": ("pre", "hostname-bin"),
    "tar": (
        "to-command", "checkpoint-action", "use-compress-program", "info-script", "new-volume-script",
        "rsh-command", "rmt-command",
    ),
    "rsync": ("rsh", "rsync-path", "remove-source-files", "delete"),
    "shuf": ("output",),
    "tree": ("output",),
    "split": ("filter",),
    "man": ("pager", "html", "preprocessor"),
    "less": ("log-file", "LOG-FILE", "lesskey-file", "lesskey-src"),
    "awk": ("file", "include", "load", "exec", "inplace"),
    "file": ("compile",),
    "xargs": ("process-slot-var",),
    "diff": ("output",),
}  # fmt: skip
_SHORT: Mapping[str, str] = {
    "sort": "o",
    "sed": "if",
    "tar": "IF",
    "rsync": "e",
    "shuf": "o",
    "tree": "oR",
    "man": "PH",
    "less": "oOk",
    "awk": "filE",
    "file": "C",
}
_FIND = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls)")
_GIT_GLOBAL = re.compile(r"-[cCp].*|--(?:git-dir|work-tree|namespace|exec-path|config-env|paginate).*")
_GIT_RUNS = frozenset(("-x", "-u"))
_SED_SAFE = re.compile(
    r"(?:(?:\d+|\$|/[^/\\;\n]*/)(?:,(?:\d+|\$|\+\d+|/[^/\\;\n]*/))?!?)?[pdqQ=]"
    r"|s(?P<d>[/|,#:@])(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)[gpiI0-9]*"
)
_AWK_RISKY = re.compile(r"system|getline|[|>@]|print\s*\"?/dev|close|fflush|ENVIRON")
_SAME = {
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "gsed": "sed",
    "gtar": "tar",
    "gsort": "sort",
    "gfind": "find",
}


def dangerous_options(program: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments that make this program write a file, or run another, where it would not do so by nature."""
    name = _SAME.get(basename(program), basename(program))
    found = [word for word in arguments if _is_named(name, word)]
    match name:
        case "find":
            found += [word for word in arguments if _FIND.fullmatch(word)]
        case "git":
            found += _of_git(arguments)
        case "sed":
            found += [word for word in _scripts(arguments) if not _is_safe_sed(word)]
        case "awk":
            found += [word for word in arguments if _AWK_RISKY.search(word)]
        case "printf":
            found += [word for word in arguments[:1] if word.startswith("-v")]
        case "uniq":
            # A second operand is the file it writes.
            found += [word for word in arguments if not word.startswith("-")][1:]
        case _:
            pass
    return tuple(dict.fromkeys(found))


def spelled_out(program: str, arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments with abbreviated options of this kind in full, as GNU programs and git take them."""
    name = _SAME.get(program, program)
    return tuple(_in_full(name, word) for word in arguments)


def _in_full(program: str, word: str) -> str:
    option, sign, value = word.removeprefix("--").partition("=")
    if not word.startswith("--") or not option:
        return word
    full = next((known for known in _LONG.get(program, ()) if known.startswith(option)), option)
    return f"--{full}{sign}{value}"


def _is_named(program: str, word: str) -> bool:
    if word.startswith("--"):
        option = word[2:].partition("=")[0]
        return bool(option) and any(known.startswith(option) for known in _LONG.get(program, ()))
    return word.startswith("-") and any(letter in word[1:] for letter in _SHORT.get(program, ""))


def _of_git(arguments: Sequence[str]) -> list[str]:
    at = next((index for index, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
    options = [word for word in arguments[:at] if _GIT_GLOBAL.fullmatch(word)]
    options += [word for word in arguments if word.startswith("-O")]
    # Options with a value of its own make the value look like the subcommand: those are reported already.
    subcommand = arguments[at] if at < len(arguments) else ""
    if subcommand in ("rebase", "bisect", "fetch", "clone", "pull", "submodule", "filter-branch", "difftool"):
        options += [word for word in arguments[at + 1 :] if word in _GIT_RUNS]
    if subcommand in ("filter-branch", "config", "difftool", "mergetool", "hook"):
        options.append(subcommand)
    if subcommand in ("bisect", "submodule"):
        options += [word for word in arguments[at + 1 :] if word in ("run", "foreach")]
    if subcommand in ("archive", "format-patch"):
        options += [word for word in arguments[at + 1 :] if word.startswith("-o")]
    return options


def _scripts(arguments: Sequence[str]) -> list[str]:
    """What sed may take for its script: the first operand, and the value of every -e."""
    scripts: list[str] = []
    operands = [word for word in arguments if not word.startswith("-")]
    for index, word in enumerate(arguments):
        if word.startswith("-") and not word.startswith("--") and "e" in word:
            after = word.partition("e")[2]
            scripts += [after] if after else list(arguments[index + 1 : index + 2])
    return scripts or operands[:1]


def _is_safe_sed(script: str) -> bool:
    return all(_SED_SAFE.fullmatch(command.strip()) for command in script.split(";"))


WRAPPERS = frozenset(
    [
        "aws-vault", "builtin", "busybox", "bunx", "bwrap", "caffeinate", "catchsegv", "chpst", "chroot",
        "chrt", "command", "coproc", "cpulimit", "dbus-run-session", "doas", "eatmydata", "entr", "env", "exec",
        "fakeroot", "fd", "fdfind", "firejail", "flock", "gtime", "hyperfine", "ionice", "linux32", "linux64",
        "ltrace", "nice", "nocorrect", "noglob", "nohup", "npx", "nsenter", "numactl", "parallel", "perf",
        "pipx", "pkexec", "pnpx", "prlimit", "proxychains", "proxychains4", "rlwrap", "runuser", "script",
        "setarch", "setpriv", "setsid", "sg", "ssh", "start-stop-daemon", "stdbuf", "strace", "sudo",
        "systemd-run", "taskset", "time", "timeout", "torify", "torsocks", "toybox", "unbuffer", "unshare",
        "uvx", "valgrind", "watch", "xargs", "xvfb-run",
    ]
)  # fmt: skip
"""Their words from some point on are a command."""

WRAPS_AFTER: Mapping[str, frozenset[str]] = {
    "bundle": frozenset(("exec",)),
    "conda": frozenset(("run",)),
    "direnv": frozenset(("exec",)),
    "docker": frozenset(("run", "exec")),
    "git": frozenset(("run", "foreach")),
    "hatch": frozenset(("run",)),
    "kubectl": frozenset(("exec", "run", "--")),
    "mise": frozenset(("exec", "x")),
    "nix": frozenset(("-c", "--command")),
    "npm": frozenset(("exec", "x")),
    "pdm": frozenset(("run",)),
    "pipenv": frozenset(("run",)),
    "pnpm": frozenset(("exec", "dlx")),
    "podman": frozenset(("run", "exec")),
    "poetry": frozenset(("run",)),
    "uv": frozenset(("run",)),
    "yarn": frozenset(("exec", "dlx")),
}
"""The same, behind one of these words."""

SHELLS = frozenset(
    [
        "ash", "at", "bash", "batch", "csh", "dash", "fish", "ksh", "mksh", "nu", "powershell", "pwsh", "rbash",
        "sh", "su", "tcsh", "zsh",
    ]
)  # fmt: skip
"""Their words and their input are code of a shell."""

TAKING_CODE = frozenset(
    ("eval", "trap", "alias", "watch", "ssh", "scp", "sftp", "script", "parallel", "env", "flock")
)
"""Their single words may be code of a shell, and so may all of them together."""

LANGUAGES = re.compile(
    r"(?:python|pypy|perl|ruby|node|nodejs|deno|bun|php|lua|luajit|tclsh|osascript|[gmn]?awk|julia|groovy|jshell)[\d.]*"
    r"|R|Rscript"
)
"""Their words and their input are code of another language."""

COMMANDING = frozenset(
    [
        "bc", "bind", "compgen", "complete", "crontab", "dc", "ed", "emacs", "ex", "expect", "gdb", "gsed", "less",
        "lldb", "m4", "mapfile", "more", "mysql", "nvim", "psql", "readarray", "screen", "sed", "sqlite3", "tmux",
        "vi", "view", "vim", "zip",
    ]
)  # fmt: skip
"""A letter or a sign in their words or their input lets a command follow."""

EVALUATING = frozenset(
    ("test", "[", "printf", "read", "unset", "let", "declare", "typeset", "local", "export", "readonly", "wait")
)
"""Built-ins that may run what stands in an index, quoted or not: `test -v 'a[$(id)]'`."""

RUN_BY_GIT = frozenset(
    [
        "archive", "bisect", "clone", "config", "difftool", "fetch", "filter-branch", "hook", "ls-remote",
        "mergetool", "pull", "push", "rebase", "submodule",
    ]
)  # fmt: skip
"""Commands of git of which a word may be a command."""

RUN_HERE = frozenset((".", "builtin", "command", "eval", "source"))
"""They run it in the shell itself, which changes with it."""

RUN_LATER = re.compile(
    r"\w*(?:COMMAND|PAGER|EDITOR|ASKPASS|BROWSER)|VISUAL|SHELL|LESSOPEN|LESSCLOSE|GIT_SSH|GIT_EXTERNAL_DIFF"
    r"|GIT_CONFIG_VALUE_\d+|GIT_CONFIG_PARAMETERS|PS[0-4]"
)
"""Variables whose value programs run."""

RUN_FED = frozenset((".", "source"))
"""They run a file, here, which may be what they are fed."""
