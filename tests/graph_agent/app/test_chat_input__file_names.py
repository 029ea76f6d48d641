from pathlib import Path

import pytest

from graph_agent.app import chat_input
from graph_agent.app.chat_input import FileNames


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    names = (
        "src/app.py",
        "src/deep/apple.txt",
        "docs/app.md",
        ".env",
        "out/made.py",
        "a b.txt",
        "zeta.py",
        "link",
    )
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / ".gitignore").write_text("out/\n")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", ["a b.txt", "docs/", "link", "src/", "zeta.py"]),
        ("src/", ["src/app.py", "src/deep/", "src/deep/apple.txt"]),
        ("src/a", ["src/app.py"]),
        ("app", ["src/app.py", "docs/app.md", "src/deep/apple.txt"]),
        ("./zeta", ["zeta.py"]),
        (".e", [".env"]),
        ("out", ["out/"]),
        ("out/m", ["out/made.py"]),
        ("APPLE", ["src/deep/apple.txt"]),
        ("none of it", []),
    ],
)
def test_names_are_offered_by_folder_and_by_any_part_of_them(
    workspace: Path, typed: str, offered: list[str]
) -> None:
    assert sorted(FileNames(workspace).like(typed)) == sorted(offered)


def test_the_likeliest_comes_first(workspace: Path) -> None:
    assert FileNames(workspace).like("deep") == ["src/deep/", "src/deep/apple.txt"]
    assert FileNames(workspace).like("app")[0] == "src/app.py"


def test_folders_outside_are_offered_by_name_only(workspace: Path) -> None:
    inner = workspace / "src"

    assert FileNames(inner).like("../d") == ["../docs/"]
    assert FileNames(inner).like(f"{workspace}/z") == [f"{workspace}/zeta.py"]
    assert FileNames(inner).like("/no/such/folder/x") == []


def test_a_large_tree_is_looked_through_as_far_as_there_is_time(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_input, "_SECONDS", -1.0)

    assert FileNames(workspace).like("apple") == []
    assert FileNames(workspace).like("src/deep/apple") == ["src/deep/apple.txt"]
