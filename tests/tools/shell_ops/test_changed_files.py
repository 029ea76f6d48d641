import os
import subprocess
import time
from pathlib import Path

import pytest

from tools.base import Limits, ToolContext, ToolResult
from tools.shell_ops.bash import BashTool
from tools.shell_ops.changed_files import take_snapshot

PATIENT = Limits(look_s=20)


def git(folder: Path, *arguments: str) -> None:
    named = ("-c", "user.name=n", "-c", "user.email=e@example.test", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *named, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    git(folder, "init")
    for name in ("kept", "changed", "removed"):
        (folder / name).write_text(name)
    (folder / ".gitignore").write_text("ignored\n")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    return folder


async def bash(folder: Path, command: str, limits: Limits = PATIENT) -> ToolResult:
    return await BashTool().execute(command=command, context=ToolContext(folder, limits=limits))


_COMMIT = "git -c user.name=n -c user.email=e commit -qam second"


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        (
            "echo x >> changed; rm removed; mkdir d; echo x > d/new; echo x > ignored; cat kept; echo x > dirty",
            ["changed", "d/new", "dirty", "removed"],
        ),
        (f"echo x >> changed && {_COMMIT}", ["changed"]),
        ("git status; cat kept", []),
        ("touch -r kept mark; printf KEPT > kept; touch -r mark kept; rm mark; exit 4", ["kept"]),
    ],
    ids=["written", "committed", "read", "same-size-and-time"],
)
async def test_created_changed_and_removed_files_are_named(tree: Path, command: str, changed: list[str]) -> None:
    (tree / "dirty").write_text("before")

    assert (await bash(tree, command)).metadata["changed_files"] == changed


async def test_many_changes_are_named_up_to_a_limit_and_counted(tree: Path) -> None:
    result = await bash(tree, "for i in $(seq 1000 1249); do echo > $i; done")

    assert result.metadata["changed_files"] == [str(number) for number in range(1000, 1100)]
    assert result.metadata["changed_files_more"] == 150


async def test_without_a_work_tree_or_time_no_files_are_named(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()

    (tree / "sub").mkdir()

    below = await bash(tree / "sub", "echo x > ../changed; echo x > here")

    assert below.metadata["changed_files"] == ["here"]
    assert "changed_files" not in (await bash(tmp_path / "plain", "echo x > a")).metadata
    assert "changed_files" not in (await bash(tree, "echo x > a", Limits(look_s=0))).metadata


async def test_a_snapshot_runs_nothing_that_the_repository_configures(tree: Path, tmp_path: Path) -> None:
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    hooks = tree / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "fsmonitor-watchman", "query-watchman"):
        (hooks / hook).write_text(trap.read_text())
        (hooks / hook).chmod(0o755)
    for setting in ("core.fsmonitor", "filter.f.clean", "filter.f.smudge", "filter.f.process", "core.pager"):
        git(tree, "config", setting, str(trap))
    git(tree, "config", "diff.f.textconv", str(trap))
    (tree / ".gitattributes").write_text("* filter=f diff=f\n")
    os.utime(tree / "changed")

    seen = take_snapshot(tree, 20)

    assert seen is not None
    assert "changed" in seen
    assert not sprung.exists()


def test_a_repository_that_blocks_git_costs_no_more_than_the_time_limit(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    git(tree, "config", "include.path", str(tree / "pipe"))
    began = time.monotonic()

    assert take_snapshot(tree, 0.2) is None
    assert time.monotonic() - began < 5
