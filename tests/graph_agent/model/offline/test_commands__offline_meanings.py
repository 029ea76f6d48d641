import pytest

from graph_agent.model.offline.commands import (
    AppendText,
    CreateFile,
    ReadFile,
    ReplaceText,
    RunShell,
    appending,
    creating,
    reading,
    reading_from,
    reading_to,
    replacing,
    running,
)


@pytest.mark.parametrize(
    ("first", "last", "meant"),
    [
        (None, None, ReadFile("f")),
        ("3", None, ReadFile("f", 3, 3)),
        ("2", "4", ReadFile("f", 2, 4)),
        ("4", "2", ReadFile("f", 2, 4)),
        ("２", "十二", ReadFile("f", 2, 12)),
    ],
)
def test_lines_are_read_in_whichever_order_and_digits_they_are_named(
    first: str | None, last: str | None, meant: ReadFile
) -> None:
    assert reading({"path": "f", "first": first, "last": last}) == meant


def test_reading_from_a_line_has_no_end_and_reading_the_first_lines_has_one() -> None:
    assert (reading_from({"path": "f", "first": "3"}), reading_to({"path": "f", "last": None})) == (
        ReadFile("f", 3),
        ReadFile("f", 1, 1),
    )


def test_a_full_stop_ends_a_chinese_sentence_and_no_command() -> None:
    slots = {"path": "f", "old": "a", "new": "b。", "text": "ls。"}

    assert (running(slots), replacing(slots)) == (RunShell("ls"), ReplaceText("f", "a", "b"))
    assert running({"text": "“echo 。”"}) == RunShell("echo 。")


def test_texts_of_several_lines_keep_their_first_indentation() -> None:
    slots = {"path": "f", "text": "  one\n  two\n"}

    assert (creating(slots), appending(slots)) == (
        CreateFile("f", "  one\n  two\n"),
        AppendText("f", "  one\n  two"),
    )
