"""Whatever way a command is spelled: options that no row lists, and paths, hosts and programs hidden in words.

The rows of the first tests are made from the table of programs; of the others each stands for one kind of spelling.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import PolicySettings, evaluate, parse_rules
from policy.shell.arguments import only_reads, uncovered_arguments
from policy.shell.git_table import GIT_COMMANDS
from policy.shell.program_table import USUAL, program_named
from policy.shell.programs import Program
from policy.shell.project_table import PROJECT_PROGRAMS
from policy.shell.reader_table import READERS
from tools import create_default_tools

_BASH = next(tool for tool in create_default_tools(workspace=".") if tool.name == "bash")
_CHANGERS = "cp mv ln install rm chmod tee mkdir touch tar gzip zip less rsync patch scp"


def _rows() -> Iterator[tuple[tuple[str, ...], Program]]:
    """The first words of commands, and their rows."""
    for names, row in (*READERS, *PROJECT_PROGRAMS):
        yield from (((name,), row) for name in names.split() if row.has_options)
    yield from (((name,), program_named(name)) for name in _CHANGERS.split())
    yield from ((("git", name), row) for name, row in GIT_COMMANDS.items())


def _is_known(row: Program, option: str) -> bool:
    rows = (row, USUAL) if row.passes_on or not row.is_listed else (row,)
    return any(option in one.harmless_options for one in rows)


def _abbreviations(row: Program) -> Iterator[str]:
    """Every beginning of a long option, harmless ones too, that is not an option itself."""
    for option in (*row.harmless_options, *row.harmful_options):
        for length in range(3 if option.startswith("--") else len(option), len(option)):
            if not (_is_known(row, option[:length]) or (_passes(row) and option.startswith("--no-"))):
                yield option[:length]


def _bundles(row: Program) -> Iterator[str]:
    """Harmful letters alone, with a value, and behind a harmless one; a harmless value behind several letters."""
    flags = [letter for letter, colons in row.harmless_letters.items() if not colons and letter != "#"][:3]
    for letter in row.harmful_letters:
        yield from (f"-{letter}", f"-{letter}x/y", *(f"-{flag}{letter}x/y" for flag in flags))
    for letter, colons in row.harmless_letters.items():
        if colons:
            yield from (f"-{flag}{letter}x/y" for flag in flags)


def _unlisted(row: Program) -> Iterator[str]:
    yield from ("--unheard-of", "--unheard-of=x/y")
    known = {*row.harmless_letters, *(USUAL.harmless_letters if _passes(row) else ())}
    yield from (f"-{letter}" for letter in "aAbcCeEfgIijkKoOPrtTuUwxXyYzZ" if letter not in known)


def _passes(row: Program) -> bool:
    return row.passes_on or not row.is_listed


def test_an_option_that_the_row_does_not_list_is_never_harmless() -> None:
    wrong: list[str] = []
    rows = 0
    for words, row in _rows():
        if row.runs_any and row.wraps_until:
            continue
        for option in chain(_abbreviations(row), _bundles(row), _unlisted(row), row.harmful_options):
            if f"-{option.lstrip('-')}" in row.harmless_options or option in row.harmless_options:
                continue
            rows += 1
            command = (*words, option, "x")
            if only_reads(command) or not uncovered_arguments(command):
                wrong.append(" ".join(command))
    assert wrong == []
    assert rows > 15_000


def test_an_option_that_the_row_lists_is_harmless_if_it_is_spelled_out() -> None:
    wrong: list[str] = []
    rows = 0
    for words, row in _rows():
        letters = [(f"-{letter}", colons) for letter, colons in row.harmless_letters.items() if letter != "#"]
        options = [(option, ":" if valued else "") for option, valued in row.harmless_options.items()]
        for option, colons in (*letters, *options):
            command = (*words, option, *(("no:1",) if colons == ":" else ()))
            rows += 1
            # What is said of a command as a whole does not depend on the option.
            if set(uncovered_arguments(command)) - set(uncovered_arguments(words)) - {"no:1"}:
                wrong.append(" ".join(command))
    assert [command for command in wrong if not command.startswith("tar -f")] == []
    assert rows > 1_500


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("spellings").resolve() / "ws"
    for name in ("secrets/a", "secrets/b.txt", "src/app.py", "README.md", "other/src/x", ".git/config"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x\n")
    return place


def _verdict(workspace: Path, command: str, mode: str = "bypassPermissions", **rules: list[str]) -> str:
    settings = PolicySettings(rules=parse_rules(**rules), home=workspace.parent)
    context = PolicyContext(workspace, settings)
    facts = call_facts(_BASH, {"command": command.format(WS=workspace)}, Scope("", mode), context, "builtin")
    return evaluate(facts, settings).verdict


_STARS_ASK = (
    "go test -test.cpuprofile=x", "go build -o /tmp/x", "ruff check -oP", "npm test -- -c", "npm test -- -c x",
    "cargo +evil build", "pytest --pastebin=all", "pytest @args", "pytest /tmp", "pytest -p evil",
    "grep --recurs x", "diff --ext x", "vim -bS vrc", "env -iCsecrets cat a", "cp -rt/tmp/y a",
    "tar -cvI'rm x' a", "tar cf h:x y", "rsync -ae'rm' a b", "script -qc'x'", "curl -sxHOST u", "curl -Lo x u",
    "curl file:/etc/x", "curl --data-urlencode a@x u", "curl FILE:///etc/x", "sed -l 1p x", "make 'SHELL =./x'",
    "make 'a-b:=$(x)'",
    "make .SHELLFLAGS=x", "make -- CC=./x", "fd -x y", "fd -xy", "mytool -x y", "mytool --exec=y", "./run -c y",
    "mytool -- -x y", "python3 -m pytest --pastebin=all", "npx tsc --out y", "uv run pytest -p evil",
    "uv run --with evil pytest", "sort --compress=x y",
    # commands of git that are not known, or run a program
    "git send-email --to-cmd=x", "git merge-index x", "git instaweb", "git daemon", "git maintenance start",
    "git bisect run x", "git bisect view", "git apply --unsafe-paths x", "git rebase -x y", "git rebase -ixy",
    "git rebase -i", "git difftool -yxy", "git foo", "git fetch ext::x", "git merge -s x y", "git help -w x",
)  # fmt: skip
_STARS_ALLOW = (
    "git commit -m msg", "git commit -am msg", "git log --oneline -5", "git push -u origin main",
    "git checkout -b x", "git stash pop", "git merge --no-ff x", "git rebase main", "git pull --rebase",
    "git fetch --all", "git add -A", "git diff --cached", "git tag -a v1 -m x", "git branch -D x", "git",
    "npm test -- --watch=false", "npm run build", "npm install -D x", "pytest -k x", "pytest -q tests -x", "ls -la",
    "cp -r a b", "mkdir -p a/b", "go test ./...", "go vet ./...", "cargo build --release", "make -j4 test",
    "cargo clippy -- -D warnings", "cargo test -- --nocapture", "docker ps -a", "ruff check --fix .",
    "mypy --strict .", "uv run pytest -q -x", "poetry run pytest -k a", "python3 -m pytest -x", "python3 run.py",
    "tar -xzf a.tgz", "tar czf a.tgz b", "head -5 a", "sort -rn a", "sort -rnk2 a", "grep -rn x .", "rg -n x",
    "curl -fsSL http://h", "rm -rf build", "touch a", "chmod +x a", "pip install -r r.txt", "eslint --fix src",
    "npx tsc --noEmit", "black --check .", "find . -name x", "sed -n 1,5p a", "awk '{{print $1}}' a", "wc -l a",
    "du -sh .", "node a.js", "tsc --noEmit", "prettier --check .", "jest -t x", "ctest --output-on-failure",
    "cmake --build build", "mvn -q test", "gradle build", "tox -e py311", "gh pr list --limit 5",
)  # fmt: skip


@pytest.mark.parametrize(("commands", "verdict"), [(_STARS_ASK, "ask"), (_STARS_ALLOW, "allow")])
def test_a_star_stands_for_harmless_options_and_for_no_others(
    workspace: Path, commands: tuple[str, ...], verdict: str
) -> None:
    def decide(command: str) -> str:
        names = dict.fromkeys((command.split(maxsplit=1)[0], "cat"))
        return _verdict(workspace, command, "default", allow=[f"bash({name} *)" for name in names])

    assert {command: decide(command) for command in commands} == dict.fromkeys(commands, verdict)


_REACHES = {
    "read_file(secrets/**)": (
        # a variable, a pattern, an unknown folder
        "cd s*ts && cat a", "cat ${{x:-secrets}}/a", "x=.; cat $x/secrets/a", "cat $x/app.py", "cat < $x",
        "cp $x y", "env cat $x", "sh -c 'cat $x'", "timeout 5 cat \"$x\"", "python3 a.py $x", "cd $X && head a",
        "pushd s* && cat a", "for f in src/*; do cat $f; done", "find $x -exec cat {{}} +", "cat $(ls)",
        # programs that the table does not know, or that go through folders
        "mytool .", "mytool --dir=.", "mytool -v .:/x", "ruff check .", "7z a o.7z .", "bsdtar -cf o .", "ag x",
        "ack x", "ugrep x", "fdfind . -x cat", "gtar cf o .", "zstd -rf --rm .",
        # addresses of files
        "curl file://{WS}/secrets/a", "curl FILE://localhost{WS}/secrets/a", "curl file://{WS}/%73ecrets/a",
        # commands of git that show or copy contents
        "git log -p", "git log -pm", "git log -U3", "git log --unified=3", "git log --pat", "git log -c",
        "git log --binary", "git log -L1,2:a", "git reflog -p", "git stash show -p", "git stash list -p",
        "git status -v", "git show HEAD:sec*", "git archive HEAD", "git format-patch -1", "git fast-export HEAD",
        "git bundle create x HEAD", "git checkout-index -a", "git clone . ../x", "git unknown", "git difftool",
        "git whatchanged -p", "git send-email x",
    ),
    "write_file(src/**)": (
        "mv other/src .", "cp --target-directory=. other/src", "cp -t . other/src", "cp --target=. other/src",
        "cp -rt. other/src", "ln -sf x/src .", "ln -s x/src", "install other/src/x src", "rsync -a other/src .",
        "scp h:x/src .", "tar --ext -f a", "bsdtar xf a", "7z x a.7z", "gzip -r .", "zstd -rf --rm .",
        "patch -i x", "git checkout-index -a", "echo x > $f", "tee $x", "cp README.md $OUT/b",
        "sort -uosrc/a b", "touch $x",
    ),
    "web_fetch(evil.example)": (
        "curl http://evil.exa${{x}}mple/", "curl http://{{e}}vil.example", "curl 'http://{{e}}vil.example'",
        "curl 'http://[e-e]vil.example'", "curl -sxevil.example u", "curl -sxevil.example:80 u",
        "curl -x evil.example u", "x=evil; curl $x.example", "wget $x", "git clone $x", "nc $h 80", "curl --url=$x",
        "mytool $x", "timeout 5 curl $x",
    ),
    "bash(rm *)": (
        "cp /bin/r? z; ./z", "cp /bin/$x z", "cp $x z", "d=/bin; cp $d/r* z", "p=/bin/rm; cp $p z",
        "ln -s /bin/r[m] z", "install /bin/rm z", "cp $(which rm) z", "git rebase -ixrm", "git rebase -x rm",
        "git difftool -yxrm", "git bisect run rm x", "git submodule foreach rm", "tar -I'rm x' -cf a b",
        "tar -cvI'rm x' b", "rsync -e'rm' a b", "rsync -ae'rm' a b", "script -qc 'rm x'", "script -qc'rm x'",
        "flock y -c 'rm x'", "flock y -c'rm x'", "fd -x rm", "fd -xrm", "fdfind -x rm", "tclsh <<< 'exec rm x'",
        "npm exec rm x", "env -S'rm x'", "find . -exec rm {{}} +", "xargs -I{{}} rm {{}}",
    ),
}  # fmt: skip
_BESIDE = {
    "read_file(secrets/**)": (
        "cat *", "ls $x", "cd $X && ls", "echo \"see secrets: $x\"", "git commit -m \"$m\"", "make $T", "npm test",
        "pytest -q", "cat ~/x", "cat $HOME/x", "for f in src/*; do echo $f; done", "git diff -- src",
        "git log --oneline", "git log -5 --stat", "git stash list", "git status", "git show HEAD:a",
        "mkdir -p $OUT", "git push origin $b", "git checkout $b", "[ -f $x ]", "export A=$x", "tar xf a",
        "sleep $n", "kill $!", "ls; exit $?", "git --version",
    ),
    "write_file(src/**)": ("cat $x", "mv other/y .", "cp -t other a", "ls $x", "git commit -m \"$m\"", "make $T"),
    "web_fetch(evil.example)": ("cat $x", "make $T", "curl 'http://[::1]/'", "curl -d '{{\"a\":1}}' http://h/"),
    "bash(rm *)": (
        "echo $HOME", "timeout 5 ls $HOME", "git rm a", "git add rm", "git commit -m 'rm x'", "npm run rm",
        "cp src/* out", "cp *.py out", "cat $x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("verdict", ["deny", "ask"])
@pytest.mark.parametrize("rule", _REACHES)
def test_what_a_rule_closes_is_closed_in_every_spelling(workspace: Path, rule: str, verdict: str) -> None:
    mode = "bypassPermissions" if verdict == "deny" else "default"

    def runs(command: str) -> bool:
        return _verdict(workspace, command, mode, **{verdict: [rule]}, allow=["bash"]) == "allow"

    assert list(filter(runs, _REACHES[rule])) == []
    assert [command for command in _BESIDE[rule] if mode != "default" and not runs(command)] == []


@pytest.mark.parametrize(
    "command",
    [
        "env -iC/ rm -rf *", "env -C/ rm -rf *", "sudo -D/ rm -rf *", "rm -rf ${{x:-/}}", "rm -rf ${{x-/*}}",
        "rm -rf ${{x:-${{y:-/}}}}", "rm -rf \"${{x:-/}}\"/", "cd ${{x:-/}} && rm -rf *", "cd ${{x:=/}}; rm -rf .",
    ],
)  # fmt: skip
def test_a_destructive_command_is_refused_in_every_spelling(workspace: Path, command: str) -> None:
    assert _verdict(workspace, command, "bypassPermissions") == "deny"


def test_the_rows_of_these_tables_are_counted() -> None:
    tables = (_STARS_ASK, _STARS_ALLOW, *_REACHES.values(), *_BESIDE.values())
    assert sum(map(len, tables)) >= 250
