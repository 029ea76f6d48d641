import pytest

from policy.shell.shell_text import parse_shell
from tools.shell_ops.bash_parser import parse_bash


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("cd a; cd b; HERE", "a/b"),
        ("cd a; (cd b; HERE)", "a/b"),
        ("cd a; (cd b); HERE", "a"),
        ("cd a; cd /b | cd /c; HERE", "a"),
        ("cd a; cd /b; cd -; HERE", "a"),
        ("cd -; HERE", ""),
        ("pushd a; pushd b; popd; HERE", "a"),
        ("popd; HERE", ""),
        ("cd a; pushd +1; HERE", "a"),
        ("bash -c 'cd a; HERE'", "a"),
        ("env -u X -C a Y=1 HERE", "a"),
        ("env HERE -C a", ""),
        ("sudo --chdir=a env -Cb HERE", "a/b"),
        ("cd a && cd && HERE", "~"),
        ("f() { HERE; }; cd a; f", "a"),
        ("cd b; function f { cd a; }; HERE", "b"),
        ("f() { (cd b; g); }; g() { HERE; f; }; cd a; X=1 f", "a/b"),
        ("f() { cd a; }; eval f; HERE", "a"),
        ("cd a; f() { HERE; }; cd b; F=f; $F", "a"),
    ],
)
def test_a_command_runs_in_the_folder_that_its_shell_changed_to(text: str, folder: str) -> None:
    runs = parse_shell(text, parse_bash).runs

    assert {run.folder for run in runs if run.words[0] == "HERE"} == {folder}
