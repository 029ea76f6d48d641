import pytest

from policy.shell.arguments import dangerous_options, expand_abbreviations
from policy.shell.program_table import program_named
from policy.shell.programs import RUN_AS_CODE, Program


@pytest.mark.parametrize(
    "command",
    [
        "git -c core.pager=x log", "git -C x log", "git --exec-path=x log", "git diff --output=x",
        "git diff --outp=x",
        "git grep -Oless x", "git rebase -x id", "git fetch --upload-pack=x", "git submodule foreach id",
        "git bisect run id", "git archive -o x HEAD", "git format-patch -ox",
        "git config alias.x !id",
        "sort -o x y", "sort -uo x y", "sort --outp=x y", "sort --compress-prog=x", "sed -i s/a/b/ x",
        "sed -n 1eid x",
        "sed s/a/b/e", "sed s/a/b/w", "sed -ne w", "sed --in-place x", "sed -f x", "awk BEGIN{system(id)}",
        "awk {print>x}", "gawk -i inplace x", "find . -delete", "find . -exec id ;", "find . -fprint x",
        "rg --pre x y", "tar -xf x --to-command=id", "tar xf x --checkpoint-action=exec=id", "rsync -e id a b",
        "man -P id x", "printf -v PATH x", "uniq a b",
    ],
)  # fmt: skip
def test_options_that_write_or_run_are_dangerous(command: str) -> None:
    program, *arguments = command.split(" ")

    assert dangerous_options(program, tuple(arguments))


@pytest.mark.parametrize(
    "command",
    [
        "git log --oneline -n 5", "git commit -m x", "git diff --stat -C", "git show HEAD:x", "sort -u -k2 x",
        "sed -n 1,5p x", "sed s/a/b/g x", "awk {print} x", "find . -name x -type f", "rg -n foo src", "tar -tf x",
        "printf %s x", "uniq -c x", "ls -la", "grep -rn x .", "npm run output",
    ],
)  # fmt: skip
def test_ordinary_options_are_not_dangerous(command: str) -> None:
    program, *arguments = command.split(" ")

    assert dangerous_options(program, arguments) == ()


def test_abbreviated_options_are_expanded() -> None:
    assert expand_abbreviations("sort", ["--outp=x", "-k2", "--rev", "--"]) == ("--output=x", "-k2", "--rev", "--")


@pytest.mark.parametrize("name", ["python3.12", "perl", "gawk", "node", "R"])
def test_interpreters_are_known_in_every_version(name: str) -> None:
    assert program_named(name).code == "language"


def test_a_program_that_is_not_in_the_table_has_the_defaults() -> None:
    assert program_named("no-such-program") == Program()


@pytest.mark.parametrize(
    ("variable", "runs"),
    [("GIT_SSH_COMMAND", True), ("MANPAGER", True), ("PS4", True), ("HOME", False), ("A", False)],
)
def test_variables_whose_value_is_run_are_known(variable: str, runs: bool) -> None:
    assert (RUN_AS_CODE.fullmatch(variable) is not None) is runs
