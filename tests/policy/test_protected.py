from dataclasses import replace
from pathlib import PurePath, PurePosixPath
from typing import Literal

import pytest

from policy import CallFacts, Mode, PathFact, PolicySettings, evaluate, is_protected, parse_rules


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".GIT/hooks/pre-commit", "sub/.git", ".env", ".env.local", "deploy/prod.env",
        "/home/u/.bashrc",
        ".vscode/settings.json", ".graph-agent/config.toml", ".mcp.json", "/home/u/.ssh/id_rsa", "tls/server.pem",
        ".envrc", ".bash_aliases", "id_rsa", ".git-credentials", ".config/fish/config.fish", "opencode.json",
        ".config/nvim/init.lua", ".jj/repo/config.toml",
    ],
)  # fmt: skip
def test_names_that_run_programs_or_hold_keys_are_protected(path: str) -> None:
    assert is_protected(PurePath(path))


@pytest.mark.parametrize(
    "path",
    [
        "src/app.py", "git/config", "environment.py", ".gitignore", ".github/workflows/ci.yml", ".config/app.toml",
        "src/vim/x", "key.py", "",
    ],
)  # fmt: skip
def test_other_names_are_not_protected(path: str) -> None:
    assert not is_protected(PurePath(path))


_PROGRAMS = {
    "w/.venv/bin/git": ("w", True),
    "w/.venv/bin/sub/x": ("w", True),
    "usr/bin/git": ("w", True),
    "w/.venv/lib/x": ("w", False),
    "w/.venv/binary": ("w", False),
    # A workspace in a folder of PATH would be closed altogether.
    "home/bin/project/x": ("home/bin/project", False),
    "home/bin/x": ("home/bin/project", False),
}


@pytest.mark.parametrize("path", _PROGRAMS)
@pytest.mark.parametrize("access", ["write", "read"])
@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
def test_a_write_to_a_folder_of_programs_asks(path: str, access: Literal["read", "write"], mode: Mode) -> None:
    workspace, is_program = _PROGRAMS[path]
    root, resolved = PurePosixPath("/", workspace), PurePosixPath("/", path)
    settings = PolicySettings(
        rules=parse_rules(allow=["write_file(/**)", "read_file(/**)"]),
        program_folders=tuple(map(PurePosixPath, ("/w/.venv/bin", "/usr/bin", "/home/bin"))),
    )
    fact = PathFact(path, resolved, access, inside=resolved.is_relative_to(root))

    facts = CallFacts("read_file", mode, "medium", "readonly", root, paths=(fact,))
    if access == "write":
        facts = replace(facts, tool="write_file", kind="write")
    decision = evaluate(facts, settings)

    asks = is_program and access == "write"
    assert (decision.verdict, decision.rule == "protected name") == (("ask", True) if asks else ("allow", False))
