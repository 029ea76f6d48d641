from pathlib import Path

import pytest

from tests.fakes.sandboxes import NAMES
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules
from tools.sandbox.macos import PROGRAM, profile
from tools.sandbox.protected_paths import ProtectedNames

_FEW = ProtectedNames(NAMES.is_protected, folders=(".git", ".vscode"), files=(".envrc",), removed=(".bashrc",))


def test_the_profile_has_the_terms_of_the_other_forms(tmp_path: Path) -> None:
    workspace, private = tmp_path / 'a "w.s"', tmp_path / "private"
    for name in ("certs/server.key", ".git/config", "venv/bin/x"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).touch()
    shown = str(workspace).replace('"', '\\"')
    git = str(workspace).replace('"', ".").replace("w.s", r"w\.s").replace("..", ".\\.", 0)

    text = profile(
        SandboxRules(
            (workspace,), hidden=(Path("/Users/me/.ssh"),), names=_FEW, protected=(workspace / "venv" / "bin",)
        ),
        private,
    )

    lines = text.split("\n")
    assert lines[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    assert lines[3] == f'(allow file-write* (subpath "{shown}") (subpath "{private}"))'
    assert '(literal "/dev/null")' in lines[4]
    closed = lines[5]
    assert closed.startswith("(deny file-write* ")
    for name in (".vscode", ".envrc", ".bashrc", "certs/server.key", ".git/config", "venv/bin"):
        assert f'(subpath "{shown}/{name}")' in closed, name
    assert f'(subpath "{shown}/.git")' not in closed
    assert (
        r"/(.*/)?\.git/(config|hooks|config\.worktree|commondir|rebase-merge|rebase-apply|sequencer)(/|$)" in closed
    )
    assert f'(regex #"^{git}/' in closed
    for folder in (f"{shown}/venv", shown, f"{shown}/.git"):
        assert f'(literal "{folder}")' in lines[6], folder
    assert lines[7] == '(deny file-read* file-write* (subpath "/Users/me/.ssh"))'
    assert lines[8:] == [
        "(deny file-write-setugid)",
        "(deny signal)",
        "(allow signal (target same-sandbox))",
        "(deny network*)",
        "(allow network* (local unix-socket))",
    ]


def test_each_rule_has_a_filter_and_closed_parentheses(tmp_path: Path) -> None:
    text = profile(SandboxRules((tmp_path,), network=True), tmp_path)

    assert "network" not in text
    # A rule without a filter would hold for everything.
    assert [line for line in text.split("\n") if line.endswith(" )") or "()" in line] == []
    assert {line.count("(") - line.count(")") for line in text.split("\n")} == {0}


@pytest.mark.parametrize("memory", [None, 1 << 30])
def test_a_command_is_started_with_the_profile(tmp_path: Path, memory: int | None) -> None:
    backend = SandboxBackend("sandbox-exec", program=PROGRAM)
    box = Sandbox(SandboxRules((tmp_path,), memory=memory), look=lambda: backend)

    with box.launch("t") as launch:
        assert launch is not None
        words = launch.prefix

    assert words[:2] == ("/usr/bin/sandbox-exec", "-p")
    assert f'(subpath "{tmp_path}")' in words[2]
    limit = ("/bin/sh", "-c", 'ulimit -d 1048576; exec "$@"', "limit")
    assert (words[3:], launch.has_pid_namespace) == (limit if memory else (), False)
