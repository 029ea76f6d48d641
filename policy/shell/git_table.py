"""The commands of git in the one table of programs: which only read, what they show, and their harmless options."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from policy.shell.programs import Program

__all__ = ["GIT", "GIT_COMMANDS", "GIT_COMMANDS_THAT_RUN"]

GIT = Program(
    wraps_after=frozenset(("run", "foreach")),
    effect="writes",
    checked_as="git",
    walks="always",
    prints_version=True,
    obeys_folder=True,
    options=(
        "--no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs "
        "--version --html-path --man-path --info-path"
    ),
    risky_letters="C:c:p",
    risky_options=(
        "--output --output-directory --ext-diff --textconv --open-files-in-pager --upload-pack --receive-pack "
        "--exec --exec-path --config --config-env --template --extcmd --paginate --remote --git-dir --work-tree"
    ),
)
"""Git itself, and its commands that have no row: they may be anything, also a name for a shell command."""

GIT_COMMANDS_THAT_RUN = frozenset(
    [
        "archive", "bisect", "clone", "config", "difftool", "fetch", "filter-branch", "hook", "ls-remote",
        "mergetool", "pull", "push", "rebase", "submodule",
    ]
)  # fmt: skip
"""Commands of which a word may be a command."""

_CHANGED_LETTERS = "pubwaszRWDB::C::M::X::U:S:G:l:"
_CHANGED_OPTIONS = (
    "--patch --no-patch --unified= --raw --patch-with-raw --patch-with-stat --minimal --patience --histogram "
    "--diff-algorithm= --stat --compact-summary --numstat --shortstat --dirstat --summary --name-only "
    "--name-status --color --no-color --color-words --word-diff --word-diff-regex= --no-renames --check "
    "--full-index --binary --abbrev --find-renames --find-copies --find-copies-harder --diff-filter= "
    "--pickaxe-all --pickaxe-regex --relative --text --ignore-space-at-eol --ignore-space-change "
    "--ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --function-context --exit-code --quiet "
    "--ignore-submodules --no-prefix --cached --staged --merge-base --no-ext-diff --no-textconv --no-index --cc "
)
_LOG_LETTERS = f"{_CHANGED_LETTERS}n:iEFPgtcmL:#"
_LOG_OPTIONS = (
    f"{_CHANGED_OPTIONS}--oneline --graph --all --branches --tags --remotes --decorate --no-decorate --source "
    "--max-count= --skip= --since= --after= --until= --before= --author= --committer= --grep= --invert-grep "
    "--all-match --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges --no-merges "
    "--min-parents= --max-parents= --first-parent --follow --full-history --simplify-by-decoration "
    "--ancestry-path --cherry-pick --cherry --cherry-mark --left-right --left-only --right-only --boundary "
    "--reverse --date-order --topo-order --author-date-order --date= --relative-date --parents --children "
    "--pretty --format= --abbrev-commit --no-abbrev-commit --notes --no-notes --walk-reflogs --reflog --count "
    "--no-walk --not --mailmap --no-mailmap --expand-tabs --log-size"
)
_SHOWS_CHANGES = (
    "-p -u -U -c -m -W -L -G -S --patch --unified --patch-with-raw --patch-with-stat --color-words --word-diff "
    "--word-diff-regex --binary --cc --function-context --text --full-index"
)
_LISTED_OPTIONS = (
    "--list --sort= --color --no-color --column --no-column --merged --no-merged --contains --no-contains "
    "--points-at= --format= --ignore-case --delete --force --create-reflog"
)


def _git(base: Program, letters: str = "", options: str = "", content_options: str = "") -> Program:
    return replace(base, letters=letters, options=options, content_options=content_options)


_BROWSE = Program(only_reads=True, reads="names", checked_as="git", obeys_folder=True)
_CONTENTS = Program(only_reads=True, walks="always", checked_as="git", obeys_folder=True)
_COPIES = Program(walks="always", effect="writes", checked_as="git", obeys_folder=True)
"""It puts contents of files elsewhere."""
_TREE = Program(handles="tree", effect="writes", reads="names", checked_as="git", obeys_folder=True)
_COMMITS = Program(effect="writes", reads="names", checked_as="git", obeys_folder=True)
_REWRITES = replace(_COMMITS, effect="rewrites")
_NETWORK = replace(_COMMITS, effect="network")
_LISTS = replace(_BROWSE, effect="writes")

_ROWS: tuple[tuple[str, Program], ...] = (
    # what exists
    ("check-attr", _git(_BROWSE, "az", "--all --cached")),
    ("check-ignore", _git(_BROWSE, "qvzn", "--no-index --verbose --quiet --non-matching")),
    ("cherry", _git(_BROWSE, "v", "--verbose --abbrev")),
    ("count-objects", _git(_BROWSE, "vH", "--verbose --human-readable")),
    (
        "describe",
        _git(
            _BROWSE,
            "",
            "--tags --all --long --abbrev= --always --dirty --broken --match= --exclude= --exact-match --contains "
            "--candidates= --first-parent",
        ),
    ),
    ("for-each-ref", _git(_BROWSE, "", f"{_LISTED_OPTIONS} --count= --exclude=")),
    (
        "ls-files",
        _git(
            _BROWSE,
            "cdmoiskutvfzx:",
            "--cached --deleted --modified --others --ignored --stage --unmerged --killed --directory --exclude= "
            "--exclude-standard --error-unmatch --full-name --eol --abbrev --deduplicate",
        ),
    ),
    ("ls-tree", _git(_BROWSE, "drtlz", "--name-only --name-status --long --full-name --full-tree --abbrev")),
    ("merge-base", _git(_BROWSE, "a", "--all --octopus --independent --is-ancestor --fork-point")),
    ("name-rev", _git(_BROWSE, "", "--tags --refs= --all --name-only --always")),
    ("rev-list", _git(_BROWSE, "n:iEFPgm#", f"{_LOG_OPTIONS} --objects --use-bitmap-index")),
    (
        "rev-parse",
        _git(
            _BROWSE,
            "q",
            "--show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir --abbrev-ref "
            "--short --verify --quiet --symbolic --symbolic-full-name --is-inside-work-tree --is-inside-git-dir "
            "--is-bare-repository --is-shallow-repository --all --branches --tags --remotes --revs-only --no-revs",
        ),
    ),
    ("shortlog", _git(_BROWSE, "nsecw::", f"--numbered --summary --email --group= {_LOG_OPTIONS}")),
    ("show-branch", _git(_BROWSE, "ar", "--all --list --remotes --more= --current --topo-order --color")),
    ("show-ref", _git(_BROWSE, "sdq", "--head --heads --branches --tags --hash --verify --quiet --abbrev")),
    ("var version", _git(_BROWSE, "l", "--build-options")),
    (
        "status",
        _git(
            replace(_BROWSE, reads="contents", walks="always"),
            "sbvzu::M::",
            "--short --branch --long --verbose --porcelain --show-stash --untracked-files --ignored "
            "--ignore-submodules --column --no-column --ahead-behind --no-ahead-behind --renames --no-renames",
            "-v --verbose",
        ),
    ),
    # what is in files
    ("log whatchanged", _git(_CONTENTS, _LOG_LETTERS, _LOG_OPTIONS, _SHOWS_CHANGES)),
    ("show", _git(_CONTENTS, _LOG_LETTERS, _LOG_OPTIONS)),
    ("diff diff-files diff-index diff-tree", _git(_CONTENTS, f"{_CHANGED_LETTERS}cmrt#", _CHANGED_OPTIONS)),
    ("range-diff", _git(_CONTENTS, _CHANGED_LETTERS, f"{_CHANGED_OPTIONS}--left-only --right-only")),
    (
        "blame",
        _git(
            _CONTENTS,
            "bltfenpwscC::M::L:",
            "--root --show-name --show-number --show-email --porcelain --line-porcelain --incremental --reverse "
            "--since= --date= --color-lines --color-by-age --ignore-rev= --abbrev=",
        ),
    ),
    ("cat-file", _git(_CONTENTS, "tspe", "--batch-check --batch-all-objects --unordered --buffer")),
    (
        "grep",
        _git(
            replace(_CONTENTS, pattern_first=True, risky_letters="O::"),
            "aiIwvhHEGPFnlLoczpWqrA:B:C:e:m:#",
            "--cached --untracked --exclude-standard --count --line-number --column --name-only "
            "--files-with-matches --files-without-match --only-matching --heading --break --show-function "
            "--function-context --color --no-color --context= --after-context= --before-context= --max-depth= "
            "--max-count= --and --or --not --all-match --quiet --ignore-case --word-regexp --extended-regexp "
            "--fixed-strings --perl-regexp --basic-regexp --invert-match --text --full-name",
        ),
    ),
    # what lists something or changes it
    (
        "branch",
        _git(
            _LISTS,
            "avrlidDfmMcCqtu:",
            f"{_LISTED_OPTIONS} --all --remotes --verbose --quiet --show-current --abbrev= --no-abbrev --move "
            "--copy --track --no-track --set-upstream-to= --unset-upstream",
        ),
    ),
    ("tag", _git(_LISTS, "ln::adfm:F:i", f"{_LISTED_OPTIONS} --annotate --message= --file=")),
    ("bisect notes", _git(_LISTS, "fm:", "--message= --force --ref=")),
    (
        "config",
        _git(
            _LISTS,
            "lz",
            "--get --get-all --get-regexp --get-urlmatch --list --name-only --show-origin --show-scope --global "
            "--system --local --worktree --type= --bool --int --path --null --default= --includes",
        ),
    ),
    (
        "reflog",
        _git(replace(_LISTS, reads="contents", walks="always"), _LOG_LETTERS, _LOG_OPTIONS, _SHOWS_CHANGES),
    ),
    ("remote", _git(_LISTS, "vn", "--verbose --all --push --tags --no-tags")),
    (
        "stash",
        _git(
            replace(_TREE, only_reads=True, reads="contents", walks="always"),
            f"{_LOG_LETTERS}qkm:",
            f"{_LOG_OPTIONS} --include-untracked --keep-index --no-keep-index --message= --index",
            _SHOWS_CHANGES,
        ),
    ),
    ("submodule", _git(_TREE, "qb:", "--quiet --cached --recursive --init --depth=")),
    (
        "worktree",
        _git(replace(_TREE, only_reads=True), "fb:B:dqvz", "--force --detach --quiet --porcelain --verbose"),
    ),
    # what changes the working tree
    ("am", _git(_TREE, "3qs", "--continue --abort --skip --quit --3way --quiet --signoff")),
    (
        "apply",
        _git(
            _TREE,
            "Rvp:C:3qN",
            "--check --stat --numstat --summary --index --cached --3way --reverse --reject --whitespace= "
            "--verbose --recount --allow-empty --include= --exclude= --unidiff-zero --apply --quiet",
        ),
    ),
    (
        "checkout",
        _git(
            _TREE,
            "b:B:fqtdlmp",
            "--detach --quiet --force --track --no-track --ours --theirs --orphan= --merge --conflict= --patch "
            "--guess --no-guess --progress --no-progress --recurse-submodules --overlay --no-overlay",
        ),
    ),
    ("cherry-pick revert", _git(
        _TREE,
        "nxsm:",
        "--no-commit --abort --continue --skip --quit --mainline= --signoff --no-edit --ff --allow-empty",
    )),
    (
        "merge",
        _git(
            _TREE,
            "nqvm:F:X:",
            "--ff --ff-only --no-ff --squash --no-squash --abort --continue --quit --no-commit --commit --no-edit "
            "--stat --no-stat --quiet --verbose --message= --file= --allow-unrelated-histories --autostash "
            "--strategy-option= --no-verify --signoff --log --no-log",
        ),
    ),
    ("mv", _git(_TREE, "fknv", "--force --dry-run --verbose")),
    ("read-tree", _git(_TREE, "muvn", "--reset --dry-run --empty")),
    (
        "reset",
        _git(_TREE, "qNp", "--soft --mixed --hard --merge --keep --quiet --patch --no-refresh --intent-to-add"),
    ),
    (
        "restore",
        _git(
            _TREE,
            "s:SWqmp",
            "--source= --staged --worktree --quiet --ours --theirs --merge --patch --ignore-unmerged --overlay "
            "--no-overlay --progress",
        ),
    ),
    ("sparse-checkout", _git(_TREE, "", "--cone --no-cone --sparse-index --no-sparse-index")),
    (
        "switch",
        _git(
            _TREE,
            "c:C:dfqtm",
            "--create= --force-create= --detach --force --discard-changes --merge --track --no-track --orphan= "
            "--guess --no-guess --quiet --progress",
        ),
    ),
    (
        "pull",
        _git(
            replace(_TREE, effect="network"),
            "qvnr::X:aptf",
            "--rebase --no-rebase --ff --ff-only --no-ff --squash --autostash --no-edit --commit --no-commit "
            "--stat --no-stat --quiet --verbose --all --prune --tags --no-tags --depth= --dry-run --progress "
            "--force",
        ),
    ),
    ("clean", _git(replace(_TREE, effect="deletes"), "dfnqxXe:", "--force --dry-run --quiet --exclude=")),
    (
        "rm",
        _git(replace(_TREE, effect="deletes"), "rfnq", "--cached --force --dry-run --quiet --ignore-unmatch"),
    ),
    ("filter-branch", replace(_TREE, effect="rewrites", runs_any=True)),
    (
        "rebase",
        replace(
            _TREE,
            effect="rewrites",
            letters="qvnfX:",
            options="--onto= --abort --continue --skip --quit --autosquash --no-autosquash --autostash --root "
            "--stat --no-stat --keep-base --quiet --verbose --force-rebase --no-verify --rebase-merges "
            "--update-refs",
            risky_letters="x:i",
        ),
    ),
    # what changes the repository
    (
        "add",
        _git(
            _COMMITS,
            "AnvfiupN",
            "--all --update --dry-run --verbose --force --intent-to-add --refresh --ignore-errors --patch "
            "--chmod= --no-all --renormalize --sparse --ignore-removal",
        ),
    ),
    (
        "commit",
        _git(
            _COMMITS,
            "aqvsm:niopF:C:u::",
            "--all --message= --amend --no-edit --signoff --no-verify --quiet --verbose --dry-run --short "
            "--branch --porcelain --allow-empty --allow-empty-message --author= --date= --file= --reuse-message= "
            "--fixup= --squash= --reset-author --only --include --patch --no-gpg-sign --no-post-rewrite --status "
            "--no-status --cleanup= --untracked-files",
        ),
    ),
    ("commit-tree mktag write-tree", _git(_COMMITS, "p:m:", "")),
    ("fast-import", _git(_COMMITS, "", "--quiet --stats --force")),
    ("fsck", _git(_COMMITS, "v", "--full --strict --verbose --unreachable --no-dangling --no-reflogs --progress")),
    ("hash-object", _git(_COMMITS, "wt:", "--stdin --no-filters")),
    ("init", _git(_COMMITS, "qb:", "--quiet --bare --initial-branch= --object-format=")),
    ("pack-refs repack", _git(_COMMITS, "adlq", "--all --no-prune --quiet")),
    ("update-index", _git(_COMMITS, "q", "--refresh --really-refresh --add --remove --chmod=")),
    ("gc prune replace update-ref", _git(_REWRITES, "qnvdfl", "--auto --aggressive --prune --quiet --dry-run")),
    # what puts contents of files elsewhere
    ("archive", replace(_COPIES, letters="lv", options="--prefix= --list --verbose", risky_letters="o:")),
    ("format-patch", replace(
        _COPIES,
        letters="kns#",
        options="--stdout --signoff --cover-letter --numbered --no-numbered",
        risky_letters="o:",
    )),
    ("bundle fast-export", _git(_COPIES, "q", "--all --tags --quiet --progress")),
    ("checkout-index", _git(replace(_COPIES, handles="tree"), "aufqn", "--all --force --quiet --index")),
    ("send-email", replace(_COPIES, effect="network", runs_any=True)),
    ("difftool mergetool hook", replace(_COPIES, runs_any=True, risky_letters="x:")),
    (
        "clone",
        replace(
            _COPIES,
            effect="network",
            letters="qvnl46b:o:sj:",
            options="--depth= --branch= --single-branch --no-single-branch --no-checkout --quiet --verbose --bare "
            "--mirror --recursive --recurse-submodules --shallow-submodules --no-tags --progress --jobs= "
            "--origin= --filter= --sparse",
            risky_letters="u:c:",
        ),
    ),
    # what contacts hosts
    (
        "fetch",
        _git(
            _NETWORK,
            "apftunqvjk46",
            "--all --prune --tags --no-tags --depth= --unshallow --force --quiet --verbose --dry-run --progress "
            "--jobs= --append --keep --multiple --recurse-submodules --prune-tags",
        ),
    ),
    ("ls-remote", _git(_NETWORK, "htq", "--heads --tags --branches --refs --quiet --sort= --get-url --symref")),
    (
        "push",
        _git(
            _NETWORK,
            "ufdnqv",
            "--set-upstream --force --force-with-lease --all --tags --delete --dry-run --quiet --verbose "
            "--follow-tags --prune --mirror --porcelain --atomic --no-verify --progress",
        ),
    ),
)  # fmt: skip


def _rows() -> Iterator[tuple[str, Program]]:
    for names, program in _ROWS:
        for name in names.split():
            yield name, program


GIT_COMMANDS: Mapping[str, Program] = dict(_rows())
