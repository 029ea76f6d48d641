"""The one table of programs: what each runs, and by which options it writes a file or runs another program."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import basename
from typing import Literal

__all__ = [
    "GIT_COMMANDS_THAT_RUN",
    "RUN_AS_CODE",
    "Program",
    "WrapperSyntax",
    "dangerous_options",
    "expand_abbreviations",
    "program_named",
]

CodeUse = Literal["", "shell", "stdin", "words", "index", "language", "editor"]


@dataclass(frozen=True)
class WrapperSyntax:
    """How a wrapper takes the command that it runs: its options, and what else stands before that command."""

    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with a value."""
    operands: int = 0
    """Words between the options and the command."""


@dataclass(frozen=True)
class Program:
    """One row of the table; the defaults describe a program that is not in it."""

    code: CodeUse = ""
    """Where it takes code from.

    shell: its words and its input are shell code. stdin: its input is. words: its words may be, one by one and
    together. index: a built-in that evaluates the index of a variable, quoted or not, as in `test -v 'a[$(id)]'`.
    language: its words and its input are code of another language. editor: a letter or a sign in its words or its
    input lets a command follow.
    """
    wraps: bool = False
    """From some word on, its words are a command."""
    wraps_after: frozenset[str] = frozenset()
    """The same, but only after one of these words."""
    syntax: WrapperSyntax | Literal["unknown"] | None = None
    """Of a wrapper whose command an allow rule must cover as well; "unknown": where it begins cannot be told."""
    runs_here: bool = False
    """It runs code in the shell itself, which changes with it."""
    runs_any: bool = False
    """What it does depends on words or files that may change, so "always" never stores a rule for it."""
    long_options: tuple[str, ...] = ()
    """Long options by which it writes a file or runs a program."""
    short_options: str = ""
    """Letters of short options of this kind."""
    only_reads: bool = False
    """Without such options it writes no file, runs nothing and contacts nobody, whatever its arguments are."""
    checked_as: str = ""
    """The program by whose rules its arguments are checked, where that has rules beyond options."""
    overwrites: Literal["", "last", "all", "of="] = ""
    """Which of its arguments it overwrites."""
    formats_with: str = ""
    """What an argument looks like, as a regular expression, with which it destroys what is on a disk."""


_GIT_OPTIONS = (
    "output", "output-directory", "ext-diff", "textconv", "open-files-in-pager", "upload-pack", "receive-pack",
    "exec", "exec-path", "config", "config-env", "template", "extcmd", "paginate", "remote", "git-dir", "work-tree",
)  # fmt: skip
_TAR_OPTIONS = (
    "to-command", "checkpoint-action", "use-compress-program", "info-script", "new-volume-script", "rsh-command",
    "rmt-command",
)  # fmt: skip
_AWK_OPTIONS = ("file", "include", "load", "exec", "inplace")
_SED_OPTIONS = ("in-place", "file", "expression")
_LESS_OPTIONS = ("log-file", "LOG-FILE", "lesskey-file", "lesskey-src")
_ANY = "(?s:.*)"


def _wrapper(flags: str = "", valued: str = "", operands: int = 0, *, runs_here: bool = False) -> Program:
    syntax = WrapperSyntax(flags, valued, operands)
    return Program(wraps=True, syntax=syntax, runs_here=runs_here, runs_any=True)


def _runs_after(*words: str, runs_any: bool = False, options: tuple[str, ...] = ()) -> Program:
    return Program(wraps_after=frozenset(words), runs_any=runs_any, long_options=options)


_LANGUAGE = Program("language", runs_any=True)
_ROWS: tuple[tuple[str, Program], ...] = (
    # shells
    ("ash at bash batch csh dash fish ksh powershell pwsh sh su tcsh zsh", Program("shell", runs_any=True)),
    ("mksh nu rbash", Program("shell")),
    (". source", Program("stdin", runs_here=True, runs_any=True)),
    ("eval", Program("words", runs_here=True, runs_any=True)),
    ("trap", Program("words", runs_any=True)),
    ("alias scp sftp", Program("words")),
    ("[ declare export let local read readonly test typeset unset wait", Program("index")),
    # wrappers whose syntax is known
    ("builtin", _wrapper(runs_here=True)),
    ("command", _wrapper("p", runs_here=True)),
    ("doas", _wrapper("n", "u")),
    ("env", Program("words", wraps=True, syntax=WrapperSyntax("i0v", "uC"), runs_any=True)),
    ("exec", _wrapper("cl", "a")),
    ("ionice", _wrapper("t", "cn")),
    ("nice", _wrapper("", "n")),
    ("nohup", _wrapper()),
    ("setsid", _wrapper("cfw")),
    ("stdbuf", _wrapper("", "ioe")),
    ("sudo", _wrapper("nEHk", "ugp")),
    ("time", _wrapper("p")),
    ("timeout", _wrapper("vfp", "ks", operands=1)),
    (
        "xargs",
        Program(
            wraps=True,
            syntax=WrapperSyntax("0rtx", "nPILsdEa"),
            runs_any=True,
            long_options=("process-slot-var",),
        ),
    ),
    # wrappers that may put anything before the command
    (
        "busybox chroot chrt firejail gtime runuser strace taskset unshare",
        Program(wraps=True, syntax="unknown", runs_any=True),
    ),
    ("flock parallel script ssh watch", Program("words", wraps=True, syntax="unknown", runs_any=True)),
    (
        "bunx bwrap coproc entr fd ltrace npx nsenter pipx pkexec pnpx setarch systemd-run toybox uvx",
        Program(wraps=True, runs_any=True),
    ),
    ("aws-vault caffeinate catchsegv chpst cpulimit dbus-run-session eatmydata fakeroot", Program(wraps=True)),
    ("fdfind hyperfine linux32 linux64 nocorrect noglob numactl perf prlimit proxychains", Program(wraps=True)),
    ("proxychains4 rlwrap setpriv sg start-stop-daemon torify torsocks unbuffer", Program(wraps=True)),
    ("valgrind xvfb-run", Program(wraps=True)),
    ("bundle direnv", _runs_after("exec")),
    ("conda hatch pdm pipenv poetry uv", _runs_after("run")),
    ("docker podman", _runs_after("run", "exec", runs_any=True, options=("entrypoint",))),
    ("kubectl", _runs_after("exec", "run", "--", runs_any=True)),
    ("mise npm", _runs_after("exec", "x")),
    ("nix", _runs_after("-c", "--command")),
    ("pnpm yarn", _runs_after("exec", "dlx")),
    # other languages, and programs with commands of their own
    ("R Rscript bun deno groovy jshell julia lua luajit node nodejs osascript", _LANGUAGE),
    ("perl php pypy python ruby tclsh", _LANGUAGE),
    (
        "awk gawk mawk nawk",
        Program("language", runs_any=True, long_options=_AWK_OPTIONS, short_options="filE", checked_as="awk"),
    ),
    ("bc dc ed emacs ex expect gdb m4 mysql psql sqlite3 vi vim", Program("editor", runs_any=True)),
    ("bind compgen complete crontab lldb mapfile more nvim readarray screen tmux view zip", Program("editor")),
    ("sed", Program("editor", runs_any=True, long_options=_SED_OPTIONS, short_options="if", checked_as="sed")),
    ("gsed", Program("editor", long_options=_SED_OPTIONS, short_options="if", checked_as="sed")),
    ("less", Program("editor", long_options=_LESS_OPTIONS, short_options="oOk")),
    ("find", Program(runs_any=True, checked_as="find")),
    ("gfind", Program(checked_as="find")),
    ("ghci irb", Program(runs_any=True)),
    # programs that write or run by an option
    ("diff", Program(long_options=("output",), only_reads=True)),
    ("file", Program(long_options=("compile",), short_options="C", only_reads=True)),
    ("git", Program(wraps_after=frozenset(("run", "foreach")), long_options=_GIT_OPTIONS, checked_as="git")),
    ("man", Program(long_options=("pager", "html", "preprocessor"), short_options="PH")),
    ("printf", Program("index", checked_as="printf")),
    ("rg", Program(long_options=("pre", "hostname-bin"), only_reads=True)),
    (
        "rsync",
        Program(long_options=("rsh", "rsync-path", "remove-source-files", "delete"), short_options="e"),
    ),
    ("shuf", Program(long_options=("output",), short_options="o")),
    ("sort gsort", Program(long_options=("output", "compress-program"), short_options="o", only_reads=True)),
    ("split", Program(long_options=("filter",))),
    ("tar gtar", Program(long_options=_TAR_OPTIONS, short_options="IF")),
    ("tree", Program(long_options=("output",), short_options="oR")),
    ("uniq", Program(checked_as="uniq", only_reads=True)),
    # programs that only read
    ("basename cat cksum cmp comm cut dirname du echo egrep expand fgrep fold grep head", Program(only_reads=True)),
    ("ls md5sum nl od pwd readlink realpath rev sha1sum sha256sum sha512sum", Program(only_reads=True)),
    ("stat strings tac tail tr wc", Program(only_reads=True)),
    # programs that destroy what is on a disk
    ("dd", Program(overwrites="of=")),
    ("cp mv install", Program(overwrites="last")),
    ("shred tee truncate", Program(overwrites="all")),
    ("badblocks", Program(formats_with=r"-\w*[wn]\w*")),
    ("cryptsetup", Program(formats_with="luksFormat|erase|luksErase")),
    ("hdparm", Program(formats_with="--(?:security-erase|trim-sector|write-sector|make-bad-sector).*")),
    ("nvme", Program(formats_with="format|sanitize|write.*")),
    ("parted", Program(formats_with="mklabel|mktable|rm|mkpart")),
)
_PROGRAMS: Mapping[str, Program] = {name: program for names, program in _ROWS for name in names.split()}
_UNKNOWN = Program()
_UNVERSIONED = frozenset(("R", "Rscript"))
_FORMATTERS = ("mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "sfdisk", "pvcreate")
"""How the names of programs begin that format whatever they are given: `mkfs.ext4`."""

GIT_COMMANDS_THAT_RUN = frozenset(
    [
        "archive", "bisect", "clone", "config", "difftool", "fetch", "filter-branch", "hook", "ls-remote",
        "mergetool", "pull", "push", "rebase", "submodule",
    ]
)  # fmt: skip
"""Commands of git of which a word may be a command."""

RUN_AS_CODE = re.compile(
    r"\w*(?:COMMAND|PAGER|EDITOR|ASKPASS|BROWSER)|VISUAL|SHELL|LESSOPEN|LESSCLOSE|GIT_SSH|GIT_EXTERNAL_DIFF"
    r"|GIT_CONFIG_VALUE_\d+|GIT_CONFIG_PARAMETERS|PS[0-4]"
)
"""Variables whose value programs run."""


def program_named(name: str) -> Program:
    """The row of a program by its bare name; an interpreter may have a version behind it: `python3.11`."""
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    bare = name.rstrip("0123456789.")
    if bare not in _UNVERSIONED and _PROGRAMS.get(bare, _UNKNOWN).code == "language":
        return _LANGUAGE
    return Program(formats_with=_ANY) if name.startswith(_FORMATTERS) else _UNKNOWN


def dangerous_options(program: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments that make this program write a file, or run another, where it would not do so by nature."""
    row = program_named(basename(program))
    found: list[str] = []
    for word in arguments:
        if word.startswith("--"):
            option = word[2:].partition("=")[0]
            is_listed = bool(option) and any(known.startswith(option) for known in row.long_options)
        else:
            is_listed = word.startswith("-") and any(letter in word[1:] for letter in row.short_options)
        found += [word] if is_listed else []
    if row.checked_as:
        found += _CHECKS[row.checked_as](arguments)
    return tuple(dict.fromkeys(found))


def expand_abbreviations(program: str, arguments: Iterable[str]) -> tuple[str, ...]:
    """The arguments with abbreviated options of this kind in full, as GNU programs and git take them."""
    row = program_named(program)
    expanded: list[str] = []
    for word in arguments:
        option, sign, value = word.removeprefix("--").partition("=")
        is_long = word.startswith("--") and option
        full = next((known for known in row.long_options if known.startswith(option)), option)
        expanded.append(f"--{full}{sign}{value}" if is_long else word)
    return tuple(expanded)


_FIND = re.compile(r"-(?:exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls)")
_GIT_GLOBAL = re.compile(r"-[cCp].*|--(?:git-dir|work-tree|namespace|exec-path|config-env|paginate).*")
_SED_SAFE = re.compile(
    r"(?:(?:\d+|\$|/[^/\\;\n]*/)(?:,(?:\d+|\$|\+\d+|/[^/\\;\n]*/))?!?)?[pdqQ=]"
    r"|s(?P<d>[/|,#:@])(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)(?:(?!(?P=d)|\n|\\).|\\.)*(?P=d)[gpiI0-9]*"
)
_AWK_RISKY = re.compile(r"system|getline|[|>@]|print\s*\"?/dev|close|fflush|ENVIRON")


def _git_words(arguments: Sequence[str]) -> list[str]:
    at = next((index for index, word in enumerate(arguments) if not word.startswith("-")), len(arguments))
    found = [word for word in arguments[:at] if _GIT_GLOBAL.fullmatch(word)]
    found += [word for word in arguments if word.startswith("-O")]
    # The value of an option of git itself looks like the subcommand; such options have been found already.
    subcommand = arguments[at] if at < len(arguments) else ""
    risky: tuple[str, ...] = ()
    if subcommand in ("rebase", "bisect", "fetch", "clone", "pull", "submodule", "filter-branch", "difftool"):
        risky = ("-x", "-u")
    found += [word for word in arguments[at + 1 :] if word in risky]
    if subcommand in ("filter-branch", "config", "difftool", "mergetool", "hook"):
        found.append(subcommand)
    if subcommand in ("bisect", "submodule"):
        found += [word for word in arguments[at + 1 :] if word in ("run", "foreach")]
    if subcommand in ("archive", "format-patch"):
        found += [word for word in arguments[at + 1 :] if word.startswith("-o")]
    return found


def _sed_scripts(arguments: Sequence[str]) -> list[str]:
    """Of what sed may take for its script, which is the first operand or the value of every -e, the unsafe ones."""
    scripts: list[str] = []
    for index, word in enumerate(arguments):
        if word.startswith("-") and not word.startswith("--") and "e" in word:
            after = word.partition("e")[2]
            scripts += [after] if after else list(arguments[index + 1 : index + 2])
    scripts = scripts or [word for word in arguments if not word.startswith("-")][:1]
    return [text for text in scripts if not all(_SED_SAFE.fullmatch(part.strip()) for part in text.split(";"))]


_CHECKS: Mapping[str, Callable[[Sequence[str]], list[str]]] = {
    "awk": lambda arguments: [word for word in arguments if _AWK_RISKY.search(word)],
    "find": lambda arguments: [word for word in arguments if _FIND.fullmatch(word)],
    "git": _git_words,
    "printf": lambda arguments: [word for word in arguments[:1] if word.startswith("-v")],
    "sed": _sed_scripts,
    # A second operand is the file that uniq writes.
    "uniq": lambda arguments: [word for word in arguments if not word.startswith("-")][1:],
}
"""The rules beyond options: which arguments are dangerous, by `Program.checked_as`."""
