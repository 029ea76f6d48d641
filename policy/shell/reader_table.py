"""Programs that only read, in the one table of programs: unless an option makes them do more."""

from dataclasses import replace
from typing import Literal

from policy.shell.git_table import GIT
from policy.shell.programs import Program

__all__ = ["READERS"]


def _reader(reads: Literal["contents", "names", "nothing"], letters: str = "", options: str = "") -> Program:
    return Program(only_reads=True, reads=reads, letters=letters, options=f"--help --version {options}")


_SEARCH = Program(
    only_reads=True,
    pattern_first=True,
    walks="recursive",
    letters="EFGPiwxvcLlqsonHhbTUzZrRaIyA:B:C:e:f:m:#",
    options=(
        "--help --version --extended-regexp --fixed-strings --perl-regexp --basic-regexp --ignore-case "
        "--word-regexp --line-regexp --invert-match --count --color --colour --files-with-matches "
        "--files-without-match --max-count= --only-matching --quiet --silent --no-messages --byte-offset "
        "--line-number --with-filename --no-filename --null --initial-tab --after-context= --before-context= "
        "--context= --text --binary-files= --exclude= --exclude-dir= --include= --recursive "
        "--dereference-recursive --regexp= --file= --line-buffered"
    ),
    follows=r"-[A-Za-z]*R[A-Za-z]*|--dereference-r.*",
)
_FINDS = Program(
    only_reads=True,
    reads="names",
    walks="always",
    checked_as="find",
    wraps_until=frozenset(("-exec", "-execdir", "-ok", "-okdir")),
    follows="-[LH]|-follow",
    letters="LHP",
    options=(
        "-name= -iname= -path= -ipath= -wholename= -iwholename= -regex= -iregex= -regextype= "
        "-type= -xtype= -maxdepth= "
        "-mindepth= -size= -mtime= -mmin= -atime= -amin= -ctime= -cmin= -newer= -newermt= "
        "-anewer= -cnewer= -perm= "
        "-user= -group= -uid= -gid= -nouser -nogroup -empty -executable -readable -writable "
        "-links= -inum= -samefile= "
        "-lname= -ilname= -fstype= -print -print0 -printf= -ls -prune -quit -not -a -and -o "
        "-or -true -false -depth -d "
        "-mount -xdev -daystart -noleaf -follow --help --version"
    ),
    risky_options="-delete -fprint -fprint0 -fprintf -fls -files0-from",
)
READERS: tuple[tuple[str, Program], ...] = (
    ("find", replace(_FINDS, runs_any=True)),
    ("gfind", _FINDS),
    # with options that write or run
    (
        "diff",
        Program(
            letters="abBcdeEiNpqrsStTuwyZlnF:I:U:W:x:#",
            options=(
                "--brief --unified --context --recursive --ignore-case --ignore-all-space --ignore-blank-lines "
                "--ignore-space-change --side-by-side --color --exclude= --new-file --text "
                "--report-identical-files --suppress-common-lines --width= --minimal --strip-trailing-cr --normal "
                "--help --version"
            ),
            risky_options="--output",
            only_reads=True,
            walks="recursive",
            follows=r"-\w*r\w*|--recursive",
        ),
    ),
    (
        "date",
        Program(
            letters="uRI::d:r:",
            options=("--date= --utc --universal --iso-8601 --rfc-3339= --rfc-email --reference= --help --version"),
            risky_letters="s:",
            risky_options="--set",
            only_reads=True,
            checked_as="date",
        ),
    ),
    (
        "file",
        Program(
            letters="bhikLNnrF:e:P:",
            options=("--brief --mime --mime-type --mime-encoding --dereference --no-dereference --help --version"),
            risky_letters="C",
            risky_options="--compile",
            only_reads=True,
        ),
    ),
    (
        "hostname",
        Program(
            letters="aAdfiIsy",
            risky_options="--file --boot",
            risky_letters="F:b",
            only_reads=True,
            checked_as="operands",
        ),
    ),
    (
        "man",
        Program(
            letters="afkwW",
            options="--where --all",
            risky_options="--pager --html --preprocessor",
            risky_letters="P:H",
        ),
    ),
    ("printf", Program("index", only_reads=True, reads="nothing", checked_as="printf", has_options=False)),
    (
        "rg",
        Program(
            letters="abcFHhiIlLnNopPsSuUvVwx0qA:B:C:E:M:T:d:e:f:g:j:m:r:t:#",
            options=(
                "--after-context= --before-context= --context= --color= --colors= --column --count "
                "--count-matches --files --files-with-matches --files-without-match --fixed-strings --follow "
                "--glob= --iglob= --heading --no-heading --hidden --ignore-case --invert-match --json "
                "--line-number --no-line-number --line-regexp --max-columns= --max-count= --max-depth= "
                "--max-filesize= --multiline --multiline-dotall --no-filename --with-filename --no-ignore "
                "--no-ignore-vcs --no-messages --null --only-matching --passthru --pcre2 --pretty --quiet "
                "--regexp= --file= --replace= --smart-case --case-sensitive --sort= --sortr= --stats --text "
                "--threads= --trim --type= --type-not= --type-list --unrestricted --vimgrep --word-regexp --crlf "
                "--no-config --help --version"
            ),
            risky_options="--pre --hostname-bin",
            only_reads=True,
            pattern_first=True,
            walks="always",
            follows=r"-[A-Za-z]*L[A-Za-z]*|--follow",
        ),
    ),
    ("set", Program(only_reads=True, reads="nothing", checked_as="set", has_options=False)),
    (
        "shuf",
        Program(
            letters="ezri:n:",
            options="--head-count= --input-range= --echo --zero-terminated --repeat --help --version",
            risky_options="--output",
            risky_letters="o:",
            only_reads=True,
        ),
    ),
    (
        "sort gsort",
        Program(
            letters="bdfghiMnrRuVzscmCk:S:t:T:",
            options=(
                "--unique --reverse --numeric-sort --human-numeric-sort --general-numeric-sort --version-sort "
                "--key= --field-separator= --ignore-case --ignore-leading-blanks --dictionary-order --stable "
                "--check --random-sort --month-sort --merge --zero-terminated --parallel= --help --version"
            ),
            risky_options="--output --compress-program",
            risky_letters="o:",
            only_reads=True,
        ),
    ),
    ("split", Program(letters="a:b:C:dl:n:xu", risky_options="--filter", effect="writes")),
    (
        "tree",
        Program(
            letters="adfpsugDFiqrtcCAShxQNnJX",
            options=(
                "-L= -I= -P= --dirsfirst --filelimit= --gitignore --noreport --prune --du --si --inodes --help "
                "--version"
            ),
            risky_options="--output",
            risky_letters="oR",
            only_reads=True,
            reads="names",
        ),
    ),
    (
        "uniq",
        Program(
            letters="cdDiuzf:s:w:",
            options=(
                "--count --repeated --unique --ignore-case --skip-fields= --skip-chars= --check-chars= "
                "--zero-terminated --help --version"
            ),
            only_reads=True,
            checked_as="uniq",
        ),
    ),
    (
        "xxd",
        Program(
            options="-a -b -C -E -e -i -p -u -c= -g= -l= -s=",
            risky_letters="r",
            risky_options="--revert",
            only_reads=True,
            checked_as="uniq",
        ),
    ),
    # programs that only read
    (
        "cat",
        _reader(
            "contents",
            "AbeEnstTuv",
            "--number --show-all --number-nonblank --show-ends --show-tabs --squeeze-blank",
        ),
    ),
    (
        "head tail",
        _reader("contents", "c:n:fFqvz#s:", "--lines= --bytes= --quiet --silent --verbose --follow --retry --pid="),
    ),
    ("wc", _reader("contents", "clmLw", "--lines --words --bytes --chars --max-line-length")),
    (
        "cut",
        _reader(
            "contents",
            "b:c:d:f:nsz",
            ("--bytes= --characters= --delimiter= --fields= --only-delimited --complement --output-delimiter="),
        ),
    ),
    ("cksum cmp sum", _reader("contents", "a:bi:ln:rs", "--bytes= --silent --print-bytes")),
    ("comm", _reader("contents", "123iz", "--check-order --nocheck-order --output-delimiter= --total")),
    ("expand unexpand", _reader("contents", "ait:", "--tabs= --all --initial --first-only")),
    ("fold fmt", _reader("contents", "bcstuw:p:", "--width= --spaces --bytes --split-only --uniform-spacing")),
    (
        "hexdump od",
        _reader("contents", "AbcCdovxs:n:j:N:t:w::", "--address-radix= --format= --skip-bytes= --read-bytes="),
    ),
    ("join paste", _reader("contents", "a:d:e:ij:o:st:v:z1:2:", "--delimiters= --serial --check-order --header")),
    ("nl", _reader("contents", "b:d:f:h:i:l:n:ps:v:w:", "--body-numbering= --number-format= --number-width=")),
    (
        "b2sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum",
        _reader("contents", "bctwz", "--check --binary --tag --text --quiet --status --strict --ignore-missing"),
    ),
    ("strings", _reader("contents", "adfn:t:e:w#", "--all --bytes= --radix= --encoding=")),
    (
        "rev tac tr tsort",
        _reader("contents", "bcCdrs", "--complement --delete --squeeze-repeats --truncate-set1 --separator="),
    ),
    ("bzcat gzcat zcat xzcat", _reader("contents", "fqv", "--quiet --verbose")),
    ("column", _reader("contents", "tnxs:c:o:N:R:", "--table --separator= --output-separator=")),
    (
        "base32 base64",
        replace(_reader("contents", "dDiw:", "--decode --wrap= --ignore-garbage"), risky_letters="o:"),
    ),
    (
        "jq",
        Program(
            letters="cCMnrRsSejah",
            options=(
                "--arg= --argjson= --args --jsonargs --indent= --tab --raw-output --raw-input --slurp "
                "--compact-output --null-input --exit-status --sort-keys --color-output --monochrome-output "
                "--join-output --ascii-output --from-file= --help --version"
            ),
            only_reads=True,
            pattern_first=True,
            checked_as="jq",
        ),
    ),
    ("egrep fgrep grep zgrep", _SEARCH),
    # These run what files of the folder, or their own, say.
    (
        "ack ag ugrep",
        Program(
            pattern_first=True,
            walks="always",
            letters="ilnwvcaQLHhsA:B:C:G:m:",
            options="--ignore-case --hidden --color --no-color",
        ),
    ),
    ("basename dirname", _reader("names", "as:z", "--multiple --suffix= --zero")),
    ("cd", _reader("names", "LPe@")),
    (
        "du",
        _reader(
            "names",
            "aAbcdDhHklLmsSxt:B:d:0",
            (
                "--all --summarize --human-readable --total --bytes --apparent-size --max-depth= --exclude= "
                "--one-file-system --threshold= --time --si"
            ),
        ),
    ),
    (
        "ls",
        _reader(
            "names",
            "aAbBcCdDfFgGhHiI:klLmnNopqQrRsStT:uUvw:xXZ1",
            "--all --almost-all --color --human-readable --reverse --recursive --sort= --time= --time-style= "
            "--format= --full-time --group-directories-first --inode --size --si --classify --directory "
            "--no-group --numeric-uid-gid --ignore= --hide= --width= --file-type",
        ),
    ),
    ("pwd", _reader("names", "LP")),
    (
        "readlink realpath",
        _reader(
            "names",
            "efmnqsvzLP",
            (
                "--canonicalize --canonicalize-missing --canonicalize-existing --relative-to= --relative-base= "
                "--no-newline --quiet --strip"
            ),
        ),
    ),
    ("stat", _reader("names", "Lfc:t", "--format= --printf= --dereference --file-system --terse")),
    ("echo false true :", Program(only_reads=True, reads="nothing", has_options=False)),
    (
        "arch groups id locale uname users whoami",
        _reader(
            "nothing",
            "aAgGikmnoprsuvzZ",
            "--all --user --group --name --groups --machine --kernel-name --kernel-release",
        ),
    ),
    (
        "df free uptime",
        _reader(
            "nothing",
            "aAbhHgiklmPpsTt:VwB:x:",
            ("--human-readable --human --all --type= --total --inodes --output --si --pretty --since"),
        ),
    ),
    (
        "nproc numfmt",
        _reader(
            "nothing",
            "d:z",
            ("--all --ignore= --to= --from= --suffix= --padding= --format= --field= --grouping --header"),
        ),
    ),
    (
        "printenv ps",
        _reader(
            "nothing",
            "0aAdefFgHjlLMmNrTuvwxXychC:o:O:p:t:q:",
            "--null --forest --sort= --no-headers --pid= --ppid= --user= --format=",
        ),
    ),
    ("seq", Program(only_reads=True, reads="nothing", has_options=False)),
    ("type", _reader("nothing", "aftpP")),
    ("who", _reader("nothing", "abdHlmpqrsTtu", "--all --count")),
    ("which", replace(_reader("nothing", "as", "--all"), names_programs=True)),
    ("git", GIT),
)
