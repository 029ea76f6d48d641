import time

import pytest

from policy.shell.commands import guess_command_suffixes, guess_commands, wrapped_commands
from policy.shell.shell_text import parse_shell
from policy.shell.words import SimpleCommand
from tools.shell_ops.bash_parser import parse_bash


def test_the_text_of_a_command_is_its_words_joined_by_blanks() -> None:
    assert SimpleCommand(("git", "log", "a b")).text == "git log a b"


@pytest.mark.parametrize(
    "text",
    [
        "X=1 Y=2 rm a", "/bin/rm a", "env -i X=1 rm a", "timeout 5 rm a", "sudo -u root env nice -n 5 /bin/rm a",
        "bash -c 'rm a'", "bash -ec 'x; rm a'", 'sudo sh -c "env rm a"', "eval 'rm a'", "command rm a",
        "GIT_SSH_COMMAND='rm a' git fetch", "git rebase -x 'rm a' main", "git bisect run rm a",
        "git config alias.x '!rm a'", "man -P 'rm a' ls", "docker exec -it box rm a", "uv run rm a",
        "make SHELL='rm a'", "sed '1e rm a' x", "vim -c '!rm a' x", "ed <<< '!rm a'", "{rm,a}", "{,rm} a",
        "$nothing rm a", "printf %s 'rm a' | sh", r"echo -e 'r\x6d a' | sh", ". <(echo 'rm a')",
        "source /dev/stdin <<< 'rm a'", "bash --rcfile <(cat <<E\nrm a\nE\n) -i",
        "BASH_ENV=<(echo x | cat; echo 'rm a') bash x", "make -f - <<'E'\nall:\n\t@rm a\nE",
        "make --eval='$(shell rm a)'", "make --eval '$(shell rm a)'",
        "test -v 'x[$(rm a)]'", "[[ 'x[`rm a`]' -eq 1 ]]",
        "x='y[$(rm a)]'; echo $((x))", "declare -n x='y[$(rm a)]'", "compgen -C 'rm a' x",
        "ssh -oProxyCommand='rm a' h", "scp -o 'ProxyCommand rm a' h:x .", "git ls-remote 'ext::rm a'",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm a' git x",
    ],
)  # fmt: skip
def test_a_command_run_by_another_is_found(text: str) -> None:
    assert "rm a" in [command.text for command in parse_shell(text, parse_bash).runs]


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("xargs -0 rm", "rm"),
        (r"find . -name x -exec rm a \;", "rm a ;"),
        ("env X=1 rm a", "X=1 rm a"),
        ("sh -c 'X=1 rm a'", "X=1 rm a"),
    ],
)
def test_an_inner_command_is_found_as_written(text: str, run: str) -> None:
    assert run in [command.text for command in parse_shell(text, parse_bash).runs]


@pytest.mark.parametrize("text", ["echo rm a", "docker pull rm", "git commit -m 'rm a'", "vim rm", "make rm"])
def test_a_program_that_wraps_nothing_runs_only_itself(text: str) -> None:
    assert [command.words[0] for command in parse_shell(text, parse_bash).runs] == [text.split(maxsplit=1)[0]]


def test_endless_nesting_ends() -> None:
    deep = "rm a"
    for _ in range(9):
        deep = "bash -c '" + deep.replace("'", "'\"'\"'") + "'"

    assert parse_shell(deep, parse_bash).runs


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("env -i -u X A=1 git log", (("A=1", "git", "log"),)),
        ("timeout -k 5 10 git log", (("git", "log"),)),
        ("/usr/bin/nice -n5 git log", (("git", "log"),)),
        ("nohup -- git log", (("git", "log"),)),
        ("xargs -0 -n 1 rm -f", (("rm", "-f"),)),
        ("find . -name x -exec rm {} ; -okdir ls +", (("rm", "{}"), ("ls",))),
        *((command, ()) for command in ("time", "git log", "bash -c x", "command -v git")),
        *((command, None) for command in ("env -S x", "env --split-string=x", "strace git")),
    ],
)
def test_the_command_of_a_wrapper_is_known_exactly_or_not_at_all(
    command: str, inner: tuple[tuple[str, ...], ...] | None
) -> None:
    assert wrapped_commands(tuple(command.split())) == inner


def test_guesses_include_everything_between_separators_with_and_without_quotes() -> None:
    assert {"a b c", "b c", "rm x", "ls"} <= {one.text for one in guess_commands("a 'b c' && $(rm \"x\nls")}


def test_guesses_skip_words_that_introduce_a_command() -> None:
    found = {command.text for command in guess_commands("if ! X=1 a[0]=2 rm x")}

    assert ("rm x" in found, "x" in found) == (True, False)


def test_every_suffix_of_a_guess_may_be_a_command() -> None:
    assert [command.text for command in guess_command_suffixes("1e !rm x")] == ["1e !rm x", "rm x", "x"]


def test_a_command_after_very_many_words_is_guessed_quickly() -> None:
    began = time.monotonic()
    found = [command.text for command in guess_commands("A=1 " * 50_000 + "rm x")]

    assert ("rm x" in found, len(found) < 200, time.monotonic() - began < 2) == (True, True, True)
