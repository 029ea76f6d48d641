from collections.abc import Mapping
from pathlib import Path

import pytest

from graph_agent.app.project_survey import draft_instructions
from graph_agent.errors import UsageError
from tests.graph_agent.cli.commands import json_of, text_of, type_command

_CI = """\
jobs:
  a:
    steps:
    - uses: x
    - run: make deps
    - run: |
        make test
        # no
    - name: z
"""


@pytest.mark.parametrize(
    ("files", "lines"),
    [
        ({"README.md": "[badge]\n\n# It\n\n> quote\n\nDoes\nit.\n\nMore."}, ["# It", "", "Does it."]),
        ({"README": "\x00\xff binary"}, ["# repository"]),
        (
            {"Makefile": "A := 1\n.PHONY: test\ntest-all: x ## all\nlint:\n\techo\nother:\n"},
            ["- Test: `make test-all`", "- Check: `make lint`"],
        ),
        (
            {"package.json": '{"scripts": {"test:unit": "x", "a`b": "y", "dev": 1}}', "pnpm-lock.yaml": ""},
            ["- Set up: `pnpm install`", "- Test: `pnpm run test:unit`", "- Run: `pnpm run dev`"],
        ),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, ["- Set up: `npm install`"]),
        ({"package.json": "[1, {", "pyproject.toml": "= no"}, ["- Set up: `pip install -e .`"]),
        (
            {"pyproject.toml": "[tool.ruff]\n[tool.pytest.ini_options]\n[tool.mypy]\n", "uv.lock": ""},
            [
                "- Set up: `uv sync`",
                "- Test: `uv run pytest`",
                "- Check: `uv run ruff check .`, `uv run mypy .`",
                "- Format: `uv run ruff format .`",
            ],
        ),
        (
            {"Cargo.toml": "[package]"},
            ["- Build: `cargo build`", "- Test: `cargo test`", "- Check: `cargo clippy`"],
        ),
        ({"go.mod": "module x"}, ["- Build: `go build ./...`", "- Test: `go test ./...`"]),
        ({".github/workflows/c.yml": _CI}, ["- CI (.github/workflows/c.yml) runs: `make deps`, `make test`"]),
        (
            {".gitlab-ci.yml": "t:\n  script:\n    - tox\n    - 'x `y`'\nu: 1\n"},
            ["- CI (.gitlab-ci.yml) runs: `tox`"],
        ),
        (
            {
                "src/a.py": "",
                "src/b.py": "",
                "docs/x.md": "",
                ".git/config": "",
                "out/x": "",
                ".gitignore": "out\n",
            },
            ["- `docs/`: 1 file", "- `src/`: 2 files, mostly .py"],
        ),
    ],
)
def test_a_draft_says_what_the_files_of_a_repository_say(
    tmp_path: Path, files: Mapping[str, str], lines: list[str]
) -> None:
    folder = tmp_path / "repository"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="latin-1")

    text = draft_instructions(folder).text

    assert "\n".join(lines) in text
    assert "`b" not in text.replace("`build", "")


def test_a_link_out_of_the_repository_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("# Secret\n\nSecret.")
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "README.md").symlink_to(tmp_path / "secret")

    assert draft_instructions(folder).text == "# repository\n"


def test_init_writes_a_file_once_and_replaces_it_only_if_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "go.mod").write_text("module x")
    path = tmp_path / "AGENTS.md"

    printed = text_of("init", "--print")
    is_there = path.exists()
    report = json_of("init")
    written = path.read_text()
    path.write_text("mine")
    refused = [type(type_command("init", *more).exception) for more in ([], ["--json"])]
    declined = text_of("init", stdin="n\n").splitlines()[-1]
    kept = path.read_text()
    text_of("init", "--yes")

    assert (printed, is_there, report["sources"], report["text"]) == (written, False, ["go.mod"], written)
    assert (refused, declined.rpartition("] ")[2], kept) == (
        [UsageError, UsageError],
        "Nothing was changed.",
        "mine",
    )
    assert path.read_text() == written
