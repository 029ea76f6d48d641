import os
from pathlib import Path

from tools.file_ops.change import reconcile_file
from tools.files import sha256_hex
from tools.result import InterruptedCall, Reconciliation


def test_a_file_with_the_foreseen_content_was_written(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "f"
    path.write_bytes(b"new")

    found = reconcile_file(InterruptedCall({}, str(path), None, sha256_hex(b"new")))

    assert found == Reconciliation("already_applied", f"{path} has exactly the content this call was to write.")


def test_a_place_that_holds_no_file_any_more_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "pipe"
    os.mkfifo(path)

    found = reconcile_file(InterruptedCall({}, str(path), None, sha256_hex(b"new")))

    assert found.verdict == "unknown"
    assert "named pipe" in found.detail
