import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def _graph_agent(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "graph_agent", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=dict(os.environ),
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "No prompt"),
        (("run", "-"), "No prompt"),
        (("run", "x", "--output", "yaml"), "yaml"),
        (("run", "x", "--recover", "maybe"), "maybe"),
        (("run", "x", "--max-steps", "0"), "max-steps"),
        (("run", "x", "--mode", "yolo"), "yolo"),
        (("run", "x", "--workspace", "no-such-folder"), "'no-such-folder' is not a folder"),
        (("run", "x", "--thread", "a", "--resume", "b"), "cannot be combined"),
        (("run", "x", "--approve", "all"), "a new thread has none"),
        (("chat",), "No terminal found"),
    ],
)
def test_what_cannot_be_served_ends_with_2_and_says_why(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = _graph_agent(*arguments, cwd=tmp_path)

    assert (ended.returncode, ended.stdout, words in ended.stderr) == (2, "", True), ended.stderr


@pytest.mark.parametrize("command", [("resume",), ("run", "--resume", "abcd1234")])
def test_resuming_where_nothing_is_yet_says_so_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    ended = _graph_agent(*command, cwd=tmp_path)

    assert (ended.returncode, ended.stderr.count("\n"), "there is nothing yet" in ended.stderr) == (2, 1, True)


def test_a_prompt_is_read_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")

    ended = _graph_agent("run", "-", cwd=tmp_path, stdin="list\n")

    assert (ended.returncode, "notes.txt" in ended.stdout) == (0, True)


def test_a_named_thread_is_created_and_then_continued(tmp_path: Path) -> None:
    runs = [_graph_agent("run", "list", "--thread", "t1", "--output", "json", cwd=tmp_path) for _ in range(2)]
    listed = _graph_agent("threads", "list", "--json", cwd=tmp_path)

    threads = json.loads(listed.stdout)["threads"]
    assert [json.loads(run.stdout)["thread_id"] for run in runs] == ["t1", "t1"]
    assert [(thread["thread_id"], thread["turns"], thread["workspace"]) for thread in threads] == [
        ("t1", 2, str(tmp_path))
    ]


def test_a_done_thread_resumed_without_a_prompt_tells_its_last_answer(tmp_path: Path) -> None:
    first = _graph_agent("run", "list", "--thread", "t1", cwd=tmp_path)

    again = _graph_agent("run", "--resume", "t1", cwd=tmp_path)

    assert (again.returncode, again.stdout) == (0, first.stdout)


def test_bypass_by_its_long_name_runs_without_asking(tmp_path: Path) -> None:
    ended = _graph_agent("run", "run echo hi > made.txt", "--dangerously-skip-permissions", cwd=tmp_path)

    assert (ended.returncode, (tmp_path / "made.txt").read_text()) == (0, "hi\n")
