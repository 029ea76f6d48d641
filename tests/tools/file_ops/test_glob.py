import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ToolEnvironment
from tools.base import PathTarget, ToolResult
from tools.file_ops.glob import GlobTool

EXAMPLE_CALLS = {
    "glob": ExampleCalls({"pattern": "**/*.txt"}, {"pattern": "*", "path": "missing"}),
}


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    around = ToolEnvironment(tmp_path)
    names = (
        "old.py",
        "src/new.py",
        ".github/workflows/ci.yml",
        ".eslintrc.json",
        "src/.hidden/x",
        "build/o.log",
    )
    for age, name in enumerate(names):
        file = around.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        os.utime(file, (1_000_000 + age, 1_000_000 + age))
    (around.workspace / ".gitignore").write_text("*.log\nbuild/\n")
    return around


async def _glob(around: ToolEnvironment, pattern: str, path: str = ".") -> ToolResult:
    return await GlobTool().execute(pattern=pattern, path=path, context=around.context())


async def test_files_come_newest_first_and_what_is_left_out_is_counted(around: ToolEnvironment) -> None:
    assert await _glob(around, "*.py") == ToolResult(
        "src/new.py\nold.py\n[left out: 4 hidden, 1 git-ignored]",
        display="*.py: 2 files",
        metadata={"files": 2, "withheld": 0},
    )


@pytest.mark.parametrize(
    ("pattern", "path", "first"),
    [
        (".github/workflows/*.yml", ".", ".github/workflows/ci.yml"),
        (".eslintrc.json", ".", ".eslintrc.json"),
        ("src/.hidden/*", ".", "src/.hidden/x"),
        ("*.yml", ".github", ".github/workflows/ci.yml"),
        ("build/*", ".", "build/o.log"),
        ("*.log", "build", "build/o.log"),
        ("**/*.yml", ".", "No file matches '**/*.yml'."),
    ],
)
async def test_a_left_out_entry_is_found_where_pattern_or_path_names_it(
    around: ToolEnvironment, pattern: str, path: str, first: str
) -> None:
    assert (await _glob(around, pattern, path)).output.splitlines()[0] == first


async def test_an_absolute_pattern_is_searched_and_evaluated_where_it_points(around: ToolEnvironment) -> None:
    pattern, tool = f"{around.workspace}/src/*.py", GlobTool()

    assert (await _glob(around, pattern)).output.splitlines()[0] == "src/new.py"
    assert tool.targets({"pattern": "/etc/*.conf"}) == [PathTarget("/etc")]
    assert tool.display_call({"pattern": "*.py"}) == "glob '*.py'"
    assert tool.display_call({"pattern": "*.py", "path": "src"}) == "glob '*.py' in src"


@pytest.mark.parametrize(
    ("pattern", "path", "kind"),
    [
        ("[z-a]", ".", "validation"),
        ("", ".", "validation"),
        ("*", "none", "not_found"),
        ("*", "old.py", "validation"),
        ("*", "/proc", "permission"),
    ],
)
async def test_what_cannot_be_searched_is_an_error_and_never_no_match(
    around: ToolEnvironment, pattern: str, path: str, kind: str
) -> None:
    assert (await _glob(around, pattern, path)).metadata == {"error_type": kind}


async def test_many_files_are_cut_and_a_cancelled_call_has_no_result(around: ToolEnvironment) -> None:
    for number in range(250):
        (around.workspace / f"f{number}.many").touch()
    cancelled = around.context()
    cancelled.cancellation.set()

    lines = (await _glob(around, "*.many")).output.splitlines()

    assert (len(lines), "the newest 200 of 250 files" in lines[-1]) == (201, True)
    assert (await GlobTool().execute(pattern="*", context=cancelled)).metadata == {"error_type": "cancelled"}


async def test_what_a_rule_hides_is_left_out_through_links_too_and_counted(around: ToolEnvironment) -> None:
    (around.workspace / "link.py").symlink_to("old.py")
    hidden = around.workspace / "old.py"
    context = replace(around.context(), may_read=lambda path: path != hidden)

    result = await GlobTool().execute(pattern="*.py", context=context)

    assert result.output == "src/new.py\n[left out: 4 hidden, 1 git-ignored, 2 withheld by a rule]"


async def test_a_link_is_followed_only_if_the_pattern_names_it(around: ToolEnvironment) -> None:
    (around.workspace / "src" / "in").mkdir(parents=True)
    (around.workspace / "src" / "in" / "a.rs").touch()
    (around.workspace / "src" / os.fsdecode(b"b\xff\n.rs")).touch()
    (around.workspace / "link").symlink_to("src")

    patterns = ["link/in/*.rs", "./link/**/*.rs", "link/in/a.rs", "{link/in,none}/*.rs", "*/in/*.rs"]
    found = [await _glob(around, pattern) for pattern in patterns]
    everywhere = (await _glob(around, "**/*.rs")).output.splitlines()

    assert ["src/in/a.rs" in result.output for result in found] == [True, True, True, False, True]
    assert sorted(everywhere[:-1]) == [r"src/$'b\xff\n.rs'", "src/in/a.rs"]


async def test_an_ignore_file_is_read_where_it_lies_and_looked_for_in_no_other_folder(
    around: ToolEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (around.workspace / "src" / ".gitignore").write_text("new.py\n")
    (around.workspace / "lib").mkdir()
    opened, plain_open = [], os.open

    def noted(path: str, *more: int, dir_fd: int | None = None) -> int:
        opened.append(path)
        return plain_open(path, *more, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", noted)
    found = await _glob(around, "**/*")

    looked_for = {Path(path).parent.name for path in opened if Path(path).name == ".gitignore"}
    assert (found.output, looked_for) == (
        "old.py\n[left out: 5 hidden, 2 git-ignored]", {"src", around.workspace.name},
    )  # fmt: skip
