import time
from pathlib import Path

import pytest

from graph_agent.app.file_names import FileNames


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


@pytest.mark.sweep
def test_a_hundred_thousand_files_are_looked_through_in_bounded_time(tmp_path: Path) -> None:
    for folder in range(200):
        (tmp_path / f"f{folder}").mkdir()
        for number in range(500):
            (tmp_path / f"f{folder}" / f"n{number}.txt").touch()
    names = FileNames(tmp_path)

    began = time.monotonic()
    found = names.like("n499")

    assert (len(found) > 0, time.monotonic() - began < 2) == (True, True)
    assert names.like("f199/n499") == ["f199/n499.txt"]
