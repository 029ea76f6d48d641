"""The one table of programs: what each reads, writes, deletes, runs or contacts, and which options do more.

Deny, ask and allow rules, "always", the refusal of destructive commands and the risk of a call all read it.
`policy.shell.arguments` reads the arguments of one command by it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "GIT_COMMANDS_THAT_RUN",
    "RSYNC_REMOVES",
    "RUN_AS_CODE",
    "Effect",
    "Program",
    "WrapperSyntax",
    "describe_program",
    "program_named",
    "steers_programs",
    "subcommand_named",
]

CodeUse = Literal["", "shell", "stdin", "words", "index", "language", "editor"]
Effect = Literal["", "writes", "script", "deletes", "discards", "rewrites", "network", "privilege", "outside"]
"""What running a program comes to, beside what its options add; "" is not known.

writes: it changes files that it names or the repository. script: it runs what files of the project say. deletes,
discards: files, or changes that were not committed, are gone afterwards. rewrites: the history of a repository.
network: it contacts a host. privilege: it runs as another user. outside: something elsewhere does the work.
"""


@dataclass(frozen=True)
class WrapperSyntax:
    """How a wrapper takes the command that it runs: its options, and what else stands before that command."""

    flags: str = ""
    """Letters of options without a value."""
    valued: str = ""
    """Letters of options with a value."""
    operands: int = 0
    """Words between the options and the command."""
    queries: str = ""
    """Letters of options with which it only looks the command up."""


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
    """Long options by which it writes a file, runs a program, or does what a file says."""
    short_options: str = ""
    """Letters of short options of this kind."""
    word_options: tuple[str, ...] = ()
    """Options of this kind that are a word after one dash: `go test -exec`."""
    valued: str = ""
    """Letters of other short options with a value, which may follow in the same word or be the next one."""
    valued_long: tuple[str, ...] = ()
    """Long options whose value may be the next word; needed where it matters which words are operands."""
    only_reads: bool = False
    """Without such options it writes no file, runs nothing and contacts nobody, whatever its arguments are."""
    reads: Literal["contents", "names", "nothing"] = "contents"
    """What it reads of the files it names: their contents, names and properties only, or nothing at all."""
    pattern_first: bool = False
    """Its first operand is a pattern or a script unless -e or -f gives one."""
    names_programs: bool = False
    """It prints where a program is, which something else may then run."""
    walks: Literal["", "always", "recursive"] = ""
    """Whether it reads all files below the folders it names, or the current one; or only with -r."""
    handles: Literal["", "removes", "changes", "copies", "packs", "unpacks", "tree"] = ""
    """What it does to folders with all that is in them. Of what copies, the last argument is where to; what unpacks
    writes below the current folder, and tree is a command of git that writes anywhere in the working tree."""
    follows: str = ""
    """Options, as a regular expression, with which it follows links out of the folders that it goes through."""
    effect: Effect = ""
    """What running it comes to."""
    checked_as: str = ""
    """The rules for its arguments where they go beyond options; see `policy.shell.arguments`."""
    overwrites: Literal["", "last", "all", "of="] = ""
    """Which of its arguments it overwrites."""
    formats_with: str | None = ""
    """What an argument looks like, as a regular expression, with which it destroys what is on a disk; None if it
    does so whatever its arguments are."""


_GIT_OPTIONS = (
    "output", "output-directory", "ext-diff", "textconv", "open-files-in-pager", "upload-pack", "receive-pack",
    "exec", "exec-path", "config", "config-env", "template", "extcmd", "paginate", "remote", "git-dir", "work-tree",
)  # fmt: skip
_CARGO_OPTIONS = ("config", "manifest-path", "target-dir", "artifact-dir", "out-dir", "lockfile-path", "open")
_NPM_OPTIONS = (
    "prefix", "script-shell", "userconfig", "globalconfig", "node-options", "shell", "editor", "cache", "git",
    "browser", "viewer", "init-module", "cwd", "dir", "use-yarnrc", "modules-folder",
)  # fmt: skip
_TAR_OPTIONS = (
    "to-command", "checkpoint-action", "use-compress-program", "info-script", "new-volume-script", "rsh-command",
    "rmt-command", "index-file", "listed-incremental", "files-from", "volno-file",
)  # fmt: skip
_AWK_OPTIONS = (
    "file", "include", "load", "exec", "inplace", "pretty-print", "profile", "dump-variables", "debug", "source",
)  # fmt: skip
_SED_OPTIONS = ("in-place", "file", "expression")
_LESS_OPTIONS = ("log-file", "LOG-FILE", "lesskey-file", "lesskey-src")
_CURL_OPTIONS = (
    "output", "output-dir", "remote-name", "remote-name-all", "remote-header-name", "create-dirs", "dump-header",
    "cookie-jar", "config", "trace", "trace-ascii", "stderr", "libcurl", "hsts", "alt-svc", "etag-save",
    "upload-file", "unix-socket", "abstract-unix-socket", "proxy", "preproxy", "netrc-file", "engine", "quote",
)  # fmt: skip
_WGET_OPTIONS = (
    "output-document", "output-file", "append-output", "directory-prefix", "config", "execute", "input-file",
    "use-askpass", "save-cookies", "post-file", "body-file", "warc-file", "rejected-log", "hsts-file",
    "preserve-permissions",
)  # fmt: skip
_GO_OPTIONS = (
    "exec", "toolexec", "o", "vettool", "overlay", "modfile", "pkgdir", "outputdir", "coverprofile", "cpuprofile",
    "memprofile", "blockprofile", "mutexprofile", "trace", "ldflags", "gcflags", "asmflags", "gccgoflags",
    "compiler", "C",
)  # fmt: skip
RSYNC_REMOVES = (
    "remove-source-files", "delete", "delete-before", "delete-during", "delete-delay", "delete-after",
    "delete-excluded", "delete-missing-args", "del",
)  # fmt: skip
"""Options by which rsync removes files, which it only lists with -n."""
_ANY = "(?s:.*)"


def _wrapper(
    flags: str = "",
    valued: str = "",
    operands: int = 0,
    *,
    queries: str = "",
    runs_here: bool = False,
    effect: Effect = "",
) -> Program:
    syntax = WrapperSyntax(flags, valued, operands, queries)
    return Program(wraps=True, syntax=syntax, runs_here=runs_here, runs_any=True, effect=effect)


def _runs_after(*words: str, runs_any: bool = False, options: tuple[str, ...] = (), effect: Effect = "") -> Program:
    return Program(wraps_after=frozenset(words), runs_any=runs_any, long_options=options, effect=effect)


def _reader(reads: Literal["contents", "names", "nothing"] = "contents", short: str = "", *long: str) -> Program:
    return Program(only_reads=True, reads=reads, short_options=short, long_options=long)


_SCRIPT = Program(effect="script")


def _runs_scripts(*words: str) -> Program:
    """A package manager for JavaScript; after these words it runs a command."""
    return Program(wraps_after=frozenset(words), long_options=_NPM_OPTIONS, short_options="C", effect="script")


_LANGUAGE = Program("language", runs_any=True)
_NETWORK = Program(effect="network")
_SEARCH = Program(
    only_reads=True,
    pattern_first=True,
    walks="recursive",
    valued="ABCDefmd",
    follows=r"-[A-Za-z]*R[A-Za-z]*|--dereference-r.*",
)
_ROWS: tuple[tuple[str, Program], ...] = (
    # shells
    ("ash at bash batch csh dash fish ksh powershell pwsh sh tcsh zsh", Program("shell", runs_any=True)),
    ("su", Program("shell", runs_any=True, effect="privilege")),
    ("mksh nu rbash", Program("shell")),
    (". source", Program("stdin", runs_here=True, runs_any=True, effect="script")),
    ("eval", Program("words", runs_here=True, runs_any=True)),
    ("trap", Program("words", runs_any=True)),
    ("alias", Program("words")),
    (
        "scp sftp",
        Program("words", short_options="SoFDb", valued="cilPJX", handles="copies", effect="network"),
    ),
    ("declare export let local read readonly typeset unset wait", Program("index")),
    ("[ test", Program("index", only_reads=True, reads="names")),
    # wrappers whose syntax is known
    ("builtin", _wrapper(runs_here=True)),
    ("command", _wrapper("p", queries="vV", runs_here=True)),
    ("doas", _wrapper("n", "u", effect="privilege")),
    ("env", Program("words", wraps=True, syntax=WrapperSyntax("i0v", "uC"), runs_any=True)),
    ("exec", _wrapper("cl", "a")),
    ("ionice", _wrapper("t", "cn")),
    ("nice", _wrapper("", "n")),
    ("nohup", _wrapper()),
    ("setsid", _wrapper("cfw")),
    ("stdbuf", _wrapper("", "ioe")),
    ("sudo", _wrapper("nEHk", "ugp", effect="privilege")),
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
        "busybox chroot chrt firejail gtime strace taskset unshare",
        Program(wraps=True, syntax="unknown", runs_any=True),
    ),
    ("runuser", Program(wraps=True, syntax="unknown", runs_any=True, effect="privilege")),
    ("flock parallel script watch", Program("words", wraps=True, syntax="unknown", runs_any=True)),
    ("ssh", Program("words", wraps=True, syntax="unknown", runs_any=True, effect="network")),
    ("bunx pipx pnpx uvx", Program(wraps=True, runs_any=True, effect="network")),
    ("npx", Program(wraps=True, runs_any=True, effect="script")),
    (
        "bwrap coproc entr ltrace nsenter setarch toybox",
        Program(wraps=True, runs_any=True),
    ),
    ("fd", Program(wraps=True, runs_any=True, walks="always")),
    ("pkexec", Program(wraps=True, runs_any=True, effect="privilege")),
    ("systemd-run", Program(wraps=True, runs_any=True, effect="outside")),
    ("aws-vault caffeinate catchsegv chpst cpulimit dbus-run-session eatmydata fakeroot", Program(wraps=True)),
    ("fdfind hyperfine linux32 linux64 nocorrect noglob numactl perf prlimit proxychains", Program(wraps=True)),
    ("proxychains4 rlwrap setpriv sg start-stop-daemon torify torsocks unbuffer", Program(wraps=True)),
    ("valgrind xvfb-run", Program(wraps=True)),
    ("bundle direnv", _runs_after("exec", effect="script")),
    ("conda hatch pdm pipenv poetry uv", _runs_after("run", effect="script")),
    (
        "docker podman",
        _runs_after("run", "exec", runs_any=True, options=("entrypoint",), effect="outside"),
    ),
    ("kubectl", _runs_after("exec", "run", "--", runs_any=True, effect="network")),
    ("mise", _runs_after("exec", "x", effect="script")),
    ("npm", _runs_scripts("exec", "x")),
    ("nix", _runs_after("-c", "--command")),
    ("pnpm yarn", _runs_scripts("exec", "dlx")),
    # other languages, and programs with commands of their own
    ("R Rscript bun deno groovy jshell julia lua luajit node nodejs osascript", _LANGUAGE),
    ("perl php pypy python ruby tclsh", _LANGUAGE),
    (
        "awk gawk mawk nawk",
        Program(
            "language",
            runs_any=True,
            long_options=_AWK_OPTIONS,
            short_options="fiIlEopdDeW",
            valued="Fv",
            only_reads=True,
            pattern_first=True,
            checked_as="awk",
        ),
    ),
    ("bc dc ed emacs ex expect gdb m4 mysql psql sqlite3 vi vim", Program("editor", runs_any=True)),
    ("bind compgen complete crontab lldb mapfile more nvim readarray screen tmux view", Program("editor")),
    (
        "zip",
        Program(
            "editor",
            long_options=("unzip-command", "output-file"),
            short_options="O",
            handles="packs",
            checked_as="zip",
        ),
    ),
    (
        "sed",
        Program(
            "editor",
            runs_any=True,
            long_options=_SED_OPTIONS,
            short_options="if",
            valued="el",
            only_reads=True,
            pattern_first=True,
            checked_as="sed",
        ),
    ),
    (
        "gsed",
        Program(
            "editor",
            long_options=_SED_OPTIONS,
            short_options="if",
            valued="el",
            only_reads=True,
            pattern_first=True,
            checked_as="sed",
        ),
    ),
    ("less", Program("editor", long_options=_LESS_OPTIONS, short_options="oOk")),
    (
        "find",
        Program(
            runs_any=True,
            only_reads=True,
            reads="names",
            walks="always",
            checked_as="find",
            follows="-[LH]|-follow",
        ),
    ),
    ("gfind", Program(only_reads=True, reads="names", walks="always", checked_as="find", follows="-[LH]|-follow")),
    ("ghci irb", Program(runs_any=True)),
    # programs that only read, but for some options
    (
        "diff",
        Program(long_options=("output",), only_reads=True, walks="recursive", follows=r"-\w*r\w*|--recursive"),
    ),
    ("date", Program(long_options=("set",), short_options="s", valued="dfr", only_reads=True, checked_as="date")),
    ("file", Program(long_options=("compile",), short_options="C", valued="eFfmP", only_reads=True)),
    (
        "hostname",
        Program(long_options=("file", "boot"), short_options="Fb", only_reads=True, checked_as="operands"),
    ),
    ("man", Program(long_options=("pager", "html", "preprocessor"), short_options="PH")),
    ("printf", Program("index", only_reads=True, reads="nothing", checked_as="printf")),
    (
        "rg",
        Program(
            long_options=("pre", "hostname-bin"),
            valued="ABCEMTdefgjmrt",
            only_reads=True,
            pattern_first=True,
            walks="always",
            follows=r"-[A-Za-z]*L[A-Za-z]*|--follow",
        ),
    ),
    ("set", Program(only_reads=True, reads="nothing", checked_as="set")),
    ("shuf", Program(long_options=("output",), short_options="o", valued="in", only_reads=True)),
    (
        "sort gsort",
        Program(long_options=("output", "compress-program"), short_options="o", valued="kSTt", only_reads=True),
    ),
    ("split", Program(long_options=("filter",), effect="writes")),
    ("tree", Program(long_options=("output",), short_options="oR", valued="HILPT", only_reads=True, reads="names")),
    (
        "uniq",
        Program(
            valued="fsw",
            valued_long=("skip-fields", "skip-chars", "check-chars"),
            only_reads=True,
            checked_as="uniq",
        ),
    ),
    (
        "xxd",
        Program(short_options="r", long_options=("revert",), valued="Rcglnos", only_reads=True, checked_as="uniq"),
    ),
    # programs that only read
    ("cat cksum cmp comm cut expand fold head hexdump join md5sum nl od", _reader()),
    ("paste rev b2sum sha1sum sha224sum sha256sum sha384sum sha512sum sum", _reader()),
    ("strings tac tail tr tsort unexpand wc bzcat column fmt gzcat zcat xzcat", _reader()),
    ("base32 base64", _reader("contents", "o")),
    ("jq", Program(only_reads=True, pattern_first=True, checked_as="jq")),
    ("egrep fgrep grep zgrep", _SEARCH),
    ("basename cd dirname du ls pwd readlink realpath stat", _reader("names")),
    ("echo false true :", _reader("nothing")),
    (
        "arch df free groups id locale nproc numfmt printenv ps seq type uname uptime users",
        _reader("nothing"),
    ),
    ("who whoami", _reader("nothing")),
    ("which", Program(only_reads=True, reads="nothing", names_programs=True)),
    # git, by its commands
    (
        "git",
        Program(
            wraps_after=frozenset(("run", "foreach")), long_options=_GIT_OPTIONS, effect="writes", checked_as="git"
        ),
    ),
    # programs that change files
    ("rm rmdir", Program(handles="removes", effect="deletes")),
    ("shred", Program(handles="removes", effect="deletes", overwrites="all")),
    ("unlink", Program(effect="deletes")),
    ("chgrp chmod chown", Program(handles="changes", effect="writes")),
    ("ln", Program(handles="copies", effect="writes")),
    ("cp mv", Program(handles="copies", effect="writes", overwrites="last")),
    ("install", Program(effect="writes", overwrites="last", long_options=("strip-program",))),
    ("tee truncate", Program(effect="writes", overwrites="all")),
    ("mkdir mktemp mkfifo touch", Program(effect="writes")),
    ("patch unzip cpio pax 7z", Program(effect="writes", handles="unpacks")),
    (
        "tar gtar",
        Program(
            long_options=_TAR_OPTIONS,
            short_options="IFgT",
            valued="bCfHKLNVX",
            handles="packs",
            effect="writes",
            checked_as="tar",
        ),
    ),
    ("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd", Program(effect="writes")),
    # programs that run what the project says
    (
        "make gmake",
        Program(
            effect="script",
            checked_as="make",
            short_options="fCIE",
            valued="oW",
            long_options=("file", "makefile", "directory", "include-dir", "eval"),
        ),
    ),
    ("just ninja rake gradle mvn ant bazel cmake ctest tox nox", _SCRIPT),
    ("cargo", Program(long_options=_CARGO_OPTIONS, short_options="CZ", effect="script")),
    ("rustc", _SCRIPT),
    ("go", Program(effect="script", word_options=_GO_OPTIONS)),
    ("pytest py.test", Program(effect="script", short_options="co", valued="kmnprW", checked_as="pytest")),
    # programs that contact hosts
    (
        "curl",
        Program(
            effect="network",
            long_options=_CURL_OPTIONS,
            short_options="oOJDcKTxE",
            valued="AbCdeFHmPQrtuUwXyYz",
            checked_as="curl",
        ),
    ),
    ("wget", Program(effect="network", long_options=_WGET_OPTIONS, short_options="OoaPie", valued="tTwQlARDIBU")),
    (
        "rsync",
        Program(
            long_options=(
                "rsh",
                "rsync-path",
                *RSYNC_REMOVES,
                "log-file",
                "write-batch",
                "files-from",
                "password-file",
            ),
            short_options="e",
            valued="fMTB@",
            handles="copies",
            effect="writes",
        ),
    ),
    ("aria2c dig ftp gh glab host http https lftp mosh nc ncat netcat nslookup ping ping6", _NETWORK),
    ("aws az brew dnf flatpak gcloud gem helm pip pip3 snap telnet terraform traceroute whois yum", _NETWORK),
    ("yt-dlp apt apt-get apk pacman zypper", _NETWORK),
    # programs that let something else do the work
    ("systemctl service launchctl loginctl", Program(effect="outside")),
    # programs that destroy what is on a disk
    ("dd", Program(overwrites="of=", effect="writes")),
    ("badblocks", Program(formats_with=r"-\w*[wn]\w*")),
    ("cryptsetup", Program(formats_with="luksFormat|erase|luksErase")),
    ("hdparm", Program(formats_with="--(?:security-erase|trim-sector|write-sector|make-bad-sector).*")),
    ("nvme", Program(formats_with="format|sanitize|write.*")),
    ("parted", Program(formats_with="mklabel|mktable|rm|mkpart")),
    # PowerShell
    ("del erase rd remove-item ri", Program(handles="removes", effect="deletes")),
    ("clear-disk format-volume initialize-disk", Program(formats_with=None)),
)
_PROGRAMS: Mapping[str, Program] = {name: program for names, program in _ROWS for name in names.split()}
_UNKNOWN = Program()
_UNVERSIONED = frozenset(("R", "Rscript"))
_FORMATTERS = ("mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "sfdisk", "pvcreate")
"""How the names of programs begin that format whatever they are given: `mkfs.ext4`."""

_BROWSE = Program(only_reads=True, reads="names", checked_as="git")
_CONTENTS = Program(only_reads=True, walks="always", checked_as="git")
_TREE = Program(handles="tree", effect="writes", checked_as="git")
_COMMITS = Program(effect="writes", checked_as="git", valued="m")
_SUBCOMMAND_ROWS: tuple[tuple[str, str, Program], ...] = (
    ("git", "check-attr check-ignore cherry count-objects describe for-each-ref ls-files ls-tree", _BROWSE),
    ("git", "merge-base name-rev rev-list rev-parse shortlog show-branch show-ref status var version", _BROWSE),
    ("git", "blame cat-file diff diff-files diff-index diff-tree log range-diff show whatchanged", _CONTENTS),
    ("git", "grep", replace(_CONTENTS, pattern_first=True, valued="ABCefm")),
    ("git", "branch bisect config notes reflog remote tag", replace(_BROWSE, effect="writes")),
    ("git", "stash submodule worktree", replace(_TREE, only_reads=True)),
    ("git", "am apply checkout checkout-index cherry-pick merge mv read-tree reset restore revert", _TREE),
    ("git", "sparse-checkout switch", _TREE),
    ("git", "clean rm", replace(_TREE, effect="deletes")),
    ("git", "filter-branch rebase", replace(_TREE, effect="rewrites")),
    ("git", "add archive bundle commit commit-tree fast-import format-patch fsck", _COMMITS),
    ("git", "hash-object init maintenance mktag pack-refs repack update-index write-tree", _COMMITS),
    ("git", "gc prune replace update-ref", Program(effect="rewrites", checked_as="git")),
    ("git", "clone fetch ls-remote push send-email", Program(effect="network", checked_as="git")),
    ("git", "pull", replace(_TREE, effect="network")),
    (
        "bun npm pnpm yarn",
        "add audit ci create dedupe i info init install link login logout outdated ping publish remove",
        _NETWORK,
    ),
    ("bun npm pnpm yarn", "search uninstall unlink up update upgrade view whoami", _NETWORK),
    (
        "bundle composer conda hatch mamba pdm pipenv poetry uv",
        "add build install lock publish remove sync update",
        _NETWORK,
    ),
    ("uv", "pip tool python", _NETWORK),
    ("cargo", "add fetch install login publish search update vendor", _NETWORK),
    ("go", "get install mod", _NETWORK),
)
_SUBCOMMANDS: Mapping[tuple[str, str], Program] = {
    (name, subcommand): program
    for names, subcommands, program in _SUBCOMMAND_ROWS
    for name in names.split()
    for subcommand in subcommands.split()
}

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
_STEERS_PROGRAMS = re.compile(
    r"PATH|CDPATH|ENV|BASH_\w+|SHELLOPTS|BASHOPTS|IFS|PROMPT_COMMAND|(?:LD|DYLD|GIT|PERL5?|RUBY|LUA|NODE|PYTHON)_?\w*"
    r"|CLASSPATH|_?JAVA_(?:TOOL_)?OPTIONS|JDK_JAVA_OPTIONS|GCONV_PATH|(?:GNU)?MAKEFLAGS|MAKEFILES|RUSTC?_?WRAPPER"
    r"|GOFLAGS|npm_config_\w+|AWKPATH|AWKLIBPATH|RIPGREP_CONFIG_PATH|LESS\w*|TAR_OPTIONS|GREP_OPTIONS|GREP_COLORS?"
)
"""Variables that decide which program or which code runs under a name, or what it does there."""
_HARMLESS_VARIABLES = re.compile(
    r"GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|GREP_COLORS?|PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|HASHSEED)|NODE_ENV|LESSCHARSET"
)


def steers_programs(variable: str) -> bool:
    """Whether a variable decides what runs under a name, other than one whose value is itself code."""
    is_other = _HARMLESS_VARIABLES.fullmatch(variable) or RUN_AS_CODE.fullmatch(variable)
    return not is_other and _STEERS_PROGRAMS.fullmatch(variable) is not None


def program_named(name: str) -> Program:
    """The row of a program by its bare name; an interpreter may have a version behind it: `python3.11`."""
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    bare = name.rstrip("0123456789.")
    if bare not in _UNVERSIONED and _PROGRAMS.get(bare, _UNKNOWN).code == "language":
        return _LANGUAGE
    return Program(formats_with=_ANY) if name.startswith(_FORMATTERS) else _UNKNOWN


def subcommand_named(name: str, subcommand: str) -> Program | None:
    """The row of a command of a program, such as `git push`; None where the program's own row holds for it."""
    return _SUBCOMMANDS.get((name, subcommand))


_EFFECTS: Mapping[Effect, str] = {
    "": "its effect is not known",
    "writes": "writes what it names",
    "script": "runs what files of the project say",
    "deletes": "deletes",
    "discards": "discards changes",
    "rewrites": "rewrites history",
    "network": "uses the network",
    "privilege": "runs as another user",
    "outside": "hands work to a program outside the sandbox",
}


def describe_program(program: Program) -> str:
    """The row in words, for people who ask what it says."""
    if program.only_reads:
        what = {"contents": "contents", "names": "names and properties", "nothing": "no files"}[program.reads]
        facts = [f"only reads: {what}"]
    elif program.code:
        facts = ["runs code that it is given"]
    elif program.wraps or program.wraps_after:
        facts = ["runs another program"]
    else:
        facts = [_EFFECTS[program.effect]]
    if program.walks:
        facts.append("goes through folders" if program.walks == "always" else "goes through folders with -r")
    options = (*(f"--{name}" for name in program.long_options), *(f"-{one}" for one in program.short_options))
    if options or program.word_options:
        facts.append(
            "options that write, run or read more: "
            + " ".join((*options, *(f"-{one}" for one in program.word_options)))
        )
    return "; ".join(facts)
