from pathlib import Path

from graph_agent.config.paths import blob_dir
from graph_agent.storage.blobs import FileBlobs
from tests.fakes.database_rows import Rows, record_of
from tests.fakes.light_commands import json_of, text_of
from tools.files import sha256_hex


def changed(rows: Rows, workspace: Path) -> None:
    workspace.mkdir()
    (workspace / "a.txt").write_text("mine \x1b[2J\n")
    rows.thread(workspace=str(workspace))
    before = FileBlobs(blob_dir(rows.path)).put(b"old\n")
    path = str(workspace.resolve() / "a.txt")
    before_sha256 = sha256_hex(b"old")
    intent = (
        f'{{"path": "{path}", "before_sha256": "{before_sha256}", "after_sha256": "x", "before_blob": "{before}"}}'
    )
    rows.journal("success", {"status": "success", "output": ""}, intent=intent)


def test_the_diff_is_printed_with_what_others_did_as_a_remark_and_no_terminal_codes(
    rows: Rows, tmp_path: Path
) -> None:
    changed(rows, tmp_path / "ws")

    assert text_of(rows, "threads", "diff", "t1").splitlines() == [
        "# a.txt: it was changed by somebody else since",
        "--- a.txt",
        "+++ a.txt",
        "@@ -1 +1 @@",
        "-old",
        "+mine \\x1b[2J",
    ]


def test_as_json_it_lists_the_files(rows: Rows, tmp_path: Path) -> None:
    changed(rows, tmp_path / "ws")

    [file] = json_of(rows, "threads", "diff", "t1")["files"]

    assert (file["path"], file["status"], file["added"], file["removed"]) == ("a.txt", "modified", 1, 1)


def test_a_thread_that_changed_nothing_says_so(rows: Rows, tmp_path: Path) -> None:
    rows.thread(workspace=str(tmp_path))

    assert text_of(rows, "threads", "diff", "t1") == f"thread t1 left no file of {tmp_path} changed\n"


def test_what_commands_changed_is_named_and_said_not_to_be_shown(rows: Rows, tmp_path: Path) -> None:
    changed(rows, tmp_path / "ws")
    seen = {"changed_files": ["a.txt", "b\x1b.txt"], "changed_files_more": 3}
    rows.call(record_of("success", "c2", tool_name="bash", arguments={"command": "make\nmore"}, metadata=seen))
    rows.journal("success", {"status": "success", "output": ""}, call_id="c2")

    assert text_of(rows, "threads", "diff", "t1").splitlines()[:2] == [
        "# not shown: a.txt, b\\x1b.txt and 3 more: changed by $ make",
        "# a.txt: it was changed by a command of this thread since",
    ]
