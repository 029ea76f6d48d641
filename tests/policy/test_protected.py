from pathlib import PurePath

import pytest

from policy import is_protected


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
