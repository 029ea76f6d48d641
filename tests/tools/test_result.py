from tools.result import DiffResult, ToolErrorType, ToolResult, failure


def test_a_failure_carries_its_kind_and_shows_its_first_line() -> None:
    assert failure(ToolErrorType.TIMEOUT, "Too slow.\nMore.", output="half", exit_code=1) == ToolResult(
        "half",
        display="Too slow.",
        error="Too slow.\nMore.",
        metadata={"error_type": "timeout", "exit_code": 1},
    )


def test_a_diff_is_json() -> None:
    assert DiffResult("f", None, "00", "@@", 1, 0).as_json() == {
        "path": "f",
        "before_sha256": None,
        "after_sha256": "00",
        "unified": "@@",
        "added": 1,
        "removed": 0,
    }
