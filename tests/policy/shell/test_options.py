import pytest

from policy.shell.options import dangerous_options, spelled_out


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
def test_options_that_write_or_run_are_told(command: str) -> None:
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
def test_ordinary_options_are_not(command: str) -> None:
    program, *arguments = command.split(" ")

    assert dangerous_options(program, arguments) == ()


def test_abbreviations_are_spelled_out() -> None:
    assert spelled_out("sort", ["--outp=x", "-k2", "--rev", "--"]) == ("--output=x", "-k2", "--rev", "--")
