"""Programs that run what their words, their input or their variables say. Names only; nothing is read here."""

import re
from collections.abc import Mapping

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
]

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
