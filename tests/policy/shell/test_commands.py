import pytest

from graph_agent.toolbox.shell_facts import parse_bash
from policy.shell.effects import read_shell


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("X=1 Y=2 rm a", "rm a"),
        ("/bin/rm a", "rm a"),
        ("env -i X=1 rm a", "rm a"),
        ("timeout 5 rm a", "rm a"),
        ("sudo -u root env nice -n 5 /bin/rm a", "rm a"),
        ("xargs -0 rm", "rm"),
        ("bash -c 'rm a'", "rm a"),
        ("bash -ec 'x; rm a'", "rm a"),
        ('sudo sh -c "env rm a"', "rm a"),
        ("eval 'rm a'", "rm a"),
        (r"find . -name x -exec rm a \;", "rm a ;"),
        ("command rm a", "rm a"),
        ("env X=1 rm a", "X=1 rm a"),
        ("sh -c 'X=1 rm a'", "X=1 rm a"),
        ("GIT_SSH_COMMAND='rm a' git fetch", "rm a"),
        ("git rebase -x 'rm a' main", "rm a"),
        ("git bisect run rm a", "rm a"),
        ("git config alias.x '!rm a'", "rm a"),
        ("man -P 'rm a' ls", "rm a"),
        ("docker exec -it box rm a", "rm a"),
        ("uv run rm a", "rm a"),
        ("make SHELL='rm a'", "rm a"),
        ("sed '1e rm a' x", "rm a"),
        ("vim -c '!rm a' x", "rm a"),
        ("ed <<< '!rm a'", "rm a"),
        ("{rm,a}", "rm a"),
        ("{,rm} a", "rm a"),
        ("$nothing rm a", "rm a"),
        ("printf %s 'rm a' | sh", "rm a"),
        (r"echo -e 'r\x6d a' | sh", "rm a"),
        (". <(echo 'rm a')", "rm a"),
        ("source /dev/stdin <<< 'rm a'", "rm a"),
        ("bash --rcfile <(cat <<E\nrm a\nE\n) -i", "rm a"),
        ("BASH_ENV=<(echo x | cat; echo 'rm a') bash x", "rm a"),
        ("make -f - <<'E'\nall:\n\t@rm a\nE", "rm a"),
        ("make --eval='$(shell rm a)'", "rm a"),
        ("test -v 'x[$(rm a)]'", "rm a"),
        ("[[ 'x[`rm a`]' -eq 1 ]]", "rm a"),
        ("x='y[$(rm a)]'; echo $((x))", "rm a"),
        ("declare -n x='y[$(rm a)]'", "rm a"),
        ("compgen -C 'rm a' x", "rm a"),
        ("ssh -oProxyCommand='rm a' h", "rm a"),
        ("scp -o 'ProxyCommand rm a' h:x .", "rm a"),
        ("GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm a' git x", "rm a"),
        ("git ls-remote 'ext::rm a'", "rm a"),
    ],
)
def test_what_is_run_in_turn_is_found(text: str, run: str) -> None:
    assert run in [command.text for command in read_shell(text, parse_bash).runs]


@pytest.mark.parametrize("text", ["echo rm a", "docker pull rm", "git commit -m 'rm a'", "vim rm", "make rm"])
def test_a_program_that_wraps_nothing_runs_only_itself(text: str) -> None:
    assert [command.words[0] for command in read_shell(text, parse_bash).runs] == [text.split(maxsplit=1)[0]]


def test_endless_nesting_ends() -> None:
    deep = "rm a"
    for _ in range(9):
        deep = "bash -c '" + deep.replace("'", "'\"'\"'") + "'"

    assert read_shell(deep, parse_bash).runs
