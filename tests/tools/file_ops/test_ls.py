from pathlib import Path

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ToolEnvironment
from tools.base import ToolResult
from tools.file_ops.ls import LsTool

EXAMPLE_CALLS = {
    "ls": ExampleCalls({"path": ".", "depth": 3}, {"path": "missing"}),
}


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    around = ToolEnvironment(tmp_path)
    ws = around.workspace
    for folder in ("src/deep/er", ".hidden", "build"):
        (ws / folder).mkdir(parents=True)
    for name, content in (
        ("a.txt", "abc"),
        ("src/m.py", ""),
        (".hidden/x", "1"),
        ("build/o.log", "12"),
        ("x.log", ""),
    ):
        (ws / name).write_text(content)
    (ws / ".gitignore").write_text("*.log\nbuild/\n")
    (ws / "link").symlink_to("src")
    return around


async def _ls(around: ToolEnvironment, path: str = ".", depth: int = 1) -> ToolResult:
    return await LsTool().execute(path=path, depth=depth, context=around.context())


async def test_a_folder_shows_types_and_sizes_and_counts_what_it_leaves_out(around: ToolEnvironment) -> None:
    assert await _ls(around) == ToolResult(
        "a.txt  3 bytes\nlink -> src\nsrc/\n[left out: 2 hidden, 2 git-ignored]",
        display=".: 3 entries",
        metadata={"entries": 3},
    )


@pytest.mark.parametrize(
    ("path", "depth", "output"),
    [
        (".hidden", 1, "x  1 byte"),
        ("build", 1, "o.log  2 bytes"),
        ("x.log", 1, "x.log  0 bytes"),
        ("src", 10, "deep/\n  er/\nm.py  0 bytes\nself -> ."),
    ],
)
async def test_what_is_named_is_shown_and_links_are_not_entered(
    around: ToolEnvironment, path: str, depth: int, output: str
) -> None:
    (around.workspace / "src" / "self").symlink_to(".")

    assert (await _ls(around, path, depth)).output == output
    assert (await _ls(around, "none")).metadata == {"error_type": "not_found"}


async def test_many_entries_are_cut_with_a_notice(around: ToolEnvironment) -> None:
    for number in range(1200):
        (around.workspace / "src" / f"{number:04}").touch()

    result = await _ls(around, "src")

    assert result.metadata == {"entries": 1000}
    assert result.output.endswith("[cut after 1000 entries; list a folder below]")


async def test_names_cannot_break_the_listing(around: ToolEnvironment) -> None:
    (around.workspace / "src" / "a\nb\x1b[1A").touch()
    (around.workspace / "src" / "link").symlink_to("c\nd\udcff")

    result = await _ls(around, "src")

    assert "$'a\\nb\\x1b[1A'  0 bytes" in result.output.splitlines()
    assert "link -> $'c\\nd\\xff'" in result.output.splitlines()
