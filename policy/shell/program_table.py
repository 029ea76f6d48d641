"""The one table of programs: what each reads, writes, deletes, runs or contacts, and which options are harmless.

Here are shells, wrappers, other languages, and programs that change files; the other rows are in
`policy.shell.reader_table`, `policy.shell.project_table` and `policy.shell.git_table`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from policy.shell.git_table import GIT_COMMANDS
from policy.shell.programs import Effect, Program, WrapperSyntax
from policy.shell.project_table import PROJECT_COMMANDS, PROJECT_PROGRAMS
from policy.shell.reader_table import READERS

__all__ = ["USUAL", "program_named", "subcommand_named"]

USUAL = Program(
    letters="hnqsvwV",
    options=(
        "--help --version --verbose --quiet --silent --debug --color --colors --no-color --dry-run --check --diff "
        "--fix --watch --watchAll --all --json --bail --ci --coverage --strict --pretty --list --noEmit --release "
        "--nocapture --runInBand --passWithNoTests --show-output --full --short --summary --stat --progress "
        "--once --fail-fast --failfast --exact --ignored --include-ignored"
    ),
)
"""Options that mean something harmless wherever they are known; of programs without a list, and of scripts."""
_SED = Program(
    "editor",
    letters="nErsuze:",
    options="--quiet --silent --regexp-extended --separate --null-data --posix --sandbox --expression=",
    risky_letters="i::f:",
    risky_options="--in-place --file",
    only_reads=True,
    pattern_first=True,
    checked_as="sed",
)
_AWK_RISKS = "--file --include --load --exec --inplace --pretty-print --profile --dump-variables --debug --source"
_TAR_RISKS = (
    "--to-command --checkpoint-action --use-compress-program --info-script --new-volume-script --rsh-command "
    "--rmt-command --index-file --listed-incremental --files-from --volno-file"
)
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
    return Program(wraps=True, syntax=syntax, runs_here=runs_here, runs_any=True, effect=effect, options_first=True)


def _runs_after(*words: str, runs_any: bool = False, risks: str = "", effect: Effect = "") -> Program:
    return Program(wraps_after=frozenset(words), runs_any=runs_any, risky_options=risks, effect=effect)


_LANGUAGE = Program("language", runs_any=True, options_first=True)
_WRAPS = Program(wraps=True, options_first=True)
_FINDS_AND_RUNS = Program(
    wraps=True,
    runs_any=True,
    walks="always",
    letters="HIuigFapLl0t:d:e:E:S:",
    options=(
        "--hidden --no-ignore --unrestricted --ignore-case --glob --extension= --type= --max-depth= --exclude="
    ),
    risky_letters="xX",
    risky_options="--exec --exec-batch",
)
_COPIES = Program(
    handles="copies",
    effect="writes",
    overwrites="last",
    letters="abdfHiLlnPpRrsuvxTt:",
    options=(
        "--archive --recursive --force --interactive --no-clobber --preserve --update --verbose "
        "--target-directory= --no-target-directory --parents --link --symbolic-link --dereference "
        "--no-dereference --reflink --backup --strip-trailing-slashes --one-file-system --attributes-only "
        "--remove-destination"
    ),
)
_CHANGES = Program(
    handles="changes",
    effect="writes",
    letters="RvcfhHLP",
    options="--recursive --verbose --changes --quiet --silent --reference= --no-dereference --from=",
)
_COMPRESSES = Program(
    handles="changes",
    effect="writes",
    letters="cdfklnNqrtv#",
    options=(
        "--keep --force --stdout --decompress --best --fast --quiet --verbose --test --list --recursive --threads="
    ),
)
_ROWS: tuple[tuple[str, Program], ...] = (
    # shells
    (
        "ash at bash batch csh dash fish ksh powershell pwsh sh tcsh zsh",
        Program("shell", runs_any=True, options_first=True),
    ),
    ("su", Program("shell", runs_any=True, effect="privilege", options_first=True)),
    ("mksh nu rbash", Program("shell", options_first=True)),
    (". source", Program("stdin", runs_here=True, runs_any=True, effect="script", options_first=True)),
    ("eval", Program("words", runs_here=True, runs_any=True)),
    ("trap", Program("words", runs_any=True)),
    ("alias", Program("words")),
    (
        "scp sftp",
        Program(
            "words", letters="rpqvCBT346P:l:c:", risky_letters="S:o:F:D:b:i:J:", handles="copies", effect="network"
        ),
    ),
    ("declare export let local read readonly typeset unset wait", Program("index", has_options=False)),
    # What these do concerns no file.
    (
        "break continue exit jobs kill return shift sleep times tty umask",
        Program(reads="nothing", has_options=False),
    ),
    ("[ test", Program("index", only_reads=True, reads="names", has_options=False)),
    # wrappers whose syntax is known
    ("builtin", _wrapper(runs_here=True)),
    ("command", _wrapper("p", queries="vV", runs_here=True)),
    ("doas", _wrapper("n", "u", effect="privilege")),
    ("env", replace(_wrapper("i0v", "uC"), code="words")),
    ("exec", _wrapper("cl", "a")),
    ("ionice", _wrapper("t", "cn")),
    ("nice", _wrapper("", "n")),
    ("nohup", _wrapper()),
    ("setsid", _wrapper("cfw")),
    ("stdbuf", _wrapper("", "ioe")),
    ("sudo", _wrapper("nEHk", "ugp", effect="privilege")),
    ("time", _wrapper("p")),
    ("timeout", _wrapper("vfp", "ks", operands=1)),
    ("xargs", replace(_wrapper("0rtx", "nPILsdEa"), risky_options="--process-slot-var")),
    # wrappers that may put anything before the command
    ("busybox chroot chrt firejail gtime strace taskset unshare", replace(_WRAPS, syntax="unknown", runs_any=True)),
    ("runuser", replace(_WRAPS, syntax="unknown", runs_any=True, effect="privilege")),
    ("flock parallel script watch", replace(_WRAPS, code="words", syntax="unknown", runs_any=True)),
    ("ssh", replace(_WRAPS, code="words", syntax="unknown", runs_any=True, effect="network")),
    ("bunx pipx pnpx uvx", replace(_WRAPS, runs_any=True, effect="network")),
    ("npx", replace(_WRAPS, runs_any=True, effect="script")),
    ("bwrap coproc entr ltrace nsenter setarch toybox", replace(_WRAPS, runs_any=True)),
    ("fd fdfind", _FINDS_AND_RUNS),
    ("pkexec", replace(_WRAPS, runs_any=True, effect="privilege")),
    ("systemd-run", replace(_WRAPS, runs_any=True, effect="outside")),
    ("aws-vault caffeinate catchsegv chpst cpulimit dbus-run-session eatmydata fakeroot", _WRAPS),
    ("hyperfine linux32 linux64 nocorrect noglob numactl perf prlimit proxychains", _WRAPS),
    ("proxychains4 rlwrap setpriv sg start-stop-daemon torify torsocks unbuffer", _WRAPS),
    ("valgrind xvfb-run", _WRAPS),
    ("bundle direnv", _runs_after("exec", effect="script")),
    ("conda hatch pdm pipenv poetry uv", _runs_after("run", effect="script")),
    (
        "docker podman",
        replace(
            _runs_after("run", "exec", runs_any=True, risks="--entrypoint", effect="outside"),
            letters="aqitdn:",
            options="--all --quiet --interactive --tty --detach --rm --no-cache --follow --tail= --format= --help",
        ),
    ),
    ("kubectl", _runs_after("exec", "run", "--", runs_any=True, effect="network")),
    ("mise", _runs_after("exec", "x", effect="script")),
    ("nix", _runs_after("-c", "--command")),
    # other languages, and programs with commands of their own
    ("R Rscript bun deno groovy jshell julia lua luajit nodejs osascript php pypy tclsh", _LANGUAGE),
    ("node perl python ruby", replace(_LANGUAGE, prints_version=True)),
    (
        "awk gawk mawk nawk",
        Program(
            "language",
            runs_any=True,
            letters="F:v:",
            options=("--field-separator= --assign= --posix --traditional --re-interval --sandbox --version --help"),
            risky_letters="f:i:I:l:E:o::p::d::D::e:W:",
            risky_options=_AWK_RISKS,
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
            letters="rqv#jyux",
            risky_letters="O:",
            risky_options="--unzip-command --output-file",
            handles="packs",
        ),
    ),
    ("sed", replace(_SED, runs_any=True)),
    ("gsed", _SED),
    (
        "less",
        Program(
            "editor",
            letters="NSRFXiIEeMmnqQrs",
            risky_letters="o:O:k:",
            risky_options="--log-file --LOG-FILE --lesskey-file --lesskey-src",
        ),
    ),
    ("ghci irb", Program(runs_any=True)),
    # programs that change files
    (
        "rm",
        Program(
            handles="removes",
            effect="deletes",
            letters="rRfidvI",
            options="--recursive --force --verbose --interactive --dir --one-file-system --preserve-root",
        ),
    ),
    (
        "rmdir",
        Program(
            handles="removes",
            effect="deletes",
            letters="pv",
            options="--parents --verbose --ignore-fail-on-non-empty",
        ),
    ),
    ("shred", Program(handles="removes", effect="deletes", overwrites="all", letters="fn:uvxzs:")),
    ("unlink", Program(effect="deletes", options="--help --version")),
    ("chgrp chmod chown", _CHANGES),
    ("ln", replace(_COPIES, overwrites="", letters="sfnrvibTLPt:")),
    ("cp", _COPIES),
    ("mv", replace(_COPIES, letters="bfinuvTt:")),
    (
        "install",
        replace(
            _COPIES,
            handles="",
            letters="bcCdDm:o:g:pt:vT",
            options=f"{_COPIES.options} --mode= --owner= --group= --directory",
            risky_options="--strip-program",
        ),
    ),
    ("tee", Program(effect="writes", overwrites="all", letters="aip", options="--append --ignore-interrupts")),
    (
        "truncate",
        Program(effect="writes", overwrites="all", letters="s:cr:", options="--size= --no-create --reference="),
    ),
    ("mkdir mkfifo", Program(effect="writes", letters="pvm:", options="--parents --verbose --mode=")),
    ("mktemp", Program(effect="writes", letters="dqut", options="--directory --dry-run --quiet --suffix=")),
    (
        "touch",
        Program(
            effect="writes",
            letters="acmhd:t:r:",
            options="--date= --no-create --reference= --time= --no-dereference",
        ),
    ),
    (
        "patch",
        Program(
            effect="writes",
            handles="unpacks",
            letters="p:RNsfbEulcti:",
            options="--dry-run --strip= --reverse --forward --silent --force --binary --verbose --input=",
        ),
    ),
    ("unzip", Program(effect="writes", handles="unpacks", letters="lqojntuvpcaCLX")),
    ("cpio pax", Program(effect="writes", handles="unpacks", letters="v")),
    ("7z 7za 7zr", Program(effect="writes", handles="unpacks", walks="always", letters="y")),
    (
        "tar gtar bsdtar",
        Program(
            letters="cxtrukvzjJamoOpSUwf:C:X:b:V:",
            options=(
                "--create --extract --get --list --append --update --verbose --gzip --bzip2 --xz --zstd "
                "--auto-compress --file= --directory= --exclude= --exclude-vcs --strip-components= "
                "--keep-old-files --skip-old-files --no-same-owner --no-same-permissions --totals --wildcards "
                "--one-file-system --no-recursion --numeric-owner --owner= --group= --mtime= --sort= --format= "
                "--touch"
            ),
            risky_letters="I:F:g:T:",
            risky_options=_TAR_RISKS,
            bundle_first=True,
            handles="packs",
            effect="writes",
            checked_as="tar",
        ),
    ),
    ("gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd", _COMPRESSES),
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
_UNKNOWN = Program()
_EFFECTS_ON_LATER_COMMANDS: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("[ alias break continue declare df dirs disown exit export getopts hash", {"changes_paths": "nothing"}),
    ("hostname jobs kill let local popd pushd read readonly return set shift shopt", {"changes_paths": "nothing"}),
    ("sync test times trap tty typeset ulimit umask unalias unset wait", {"changes_paths": "nothing"}),
    ("chgrp chmod chown mkdir rm rmdir tee touch truncate", {"changes_paths": "in place"}),
    ("cp link ln rsync", {"changes_paths": "links"}),
    ("install mv", {"changes_paths": "moves"}),
    ("chgrp chmod chown cp dd patch rsync shred sort tee touch truncate", {"writes_by": "links"}),
    ("install link ln mv rm tar unlink unzip", {"writes_by": "folders"}),
    (". alias declare enable eval exec export getopts hash local mapfile read", {"changes_shell": True}),
    ("readarray readonly set shopt source trap typeset unalias unset", {"changes_shell": True}),
    ("printf", {"variable_option": "-v"}),
    ("wait", {"variable_option": "-p"}),
    ("env", {"folder_options": "-C --chdir"}),
    ("sudo", {"folder_options": "-D --chdir"}),
    ("cargo gmake go make ninja pnpm tar", {"folder_options": "-C --directory --dir"}),
    ("git", {"folder_options": "-C --git-dir --work-tree"}),
    ("npm", {"folder_options": "-C --prefix"}),
    ("yarn", {"folder_options": "--cwd"}),
)
"""What the rows say of commands in a text: what each changes for those after it, and in which folder it works."""


def _read_rows() -> Mapping[str, Program]:
    rows = {name: program for names, program in (*_ROWS, *READERS, *PROJECT_PROGRAMS) for name in names.split()}
    for names, facts in _EFFECTS_ON_LATER_COMMANDS:
        rows |= {name: replace(rows.get(name, _UNKNOWN), **facts) for name in names.split()}
    return rows


_PROGRAMS = _read_rows()
_UNVERSIONED = frozenset(("R", "Rscript"))
_FORMATTERS = ("mkfs", "mke2fs", "mkswap", "wipefs", "blkdiscard", "sgdisk", "sfdisk", "pvcreate")
"""How the names of programs begin that format whatever they are given: `mkfs.ext4`."""

_SUBCOMMANDS: Mapping[tuple[str, str], Program] = {
    **{("git", name): program for name, program in GIT_COMMANDS.items()},
    **PROJECT_COMMANDS,
}


def program_named(name: str) -> Program:
    """The row of a program by its bare name; an interpreter may have a version behind it: `python3.11`."""
    if name in _PROGRAMS:
        return _PROGRAMS[name]
    bare = name.rstrip("0123456789.")
    if bare not in _UNVERSIONED and _PROGRAMS.get(bare, _UNKNOWN).code == "language":
        return _PROGRAMS[bare]
    return Program(formats_with=_ANY) if name.startswith(_FORMATTERS) else _UNKNOWN


def subcommand_named(name: str, subcommand: str) -> Program | None:
    """The row of a command of a program, such as `git push`; None where the program's own row holds for it."""
    return _SUBCOMMANDS.get((name, subcommand))
