from pathlib import Path

import pytest
from rich.text import Text

from graph_agent.cli.render.approval_page import approval_page, mixed_alphabets, recovery_page
from graph_agent.ports import no_sandbox_info
from tests.fakes.scripted_session import approval, recovery

_OFF = no_sandbox_info()
_NEW_FILE = "--- /dev/null\n+++ a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"


def _plain(lines: list[Text]) -> list[str]:
    return [line.plain for line in lines]


def test_an_approval_shows_tool_risk_reason_folder_and_every_argument() -> None:
    item = approval("c1", "bash", {"command": "a\nb", "timeout": 5, "x\ny": "z"}, reason="bash asks")

    assert _plain(approval_page(item, Path("/w"), _OFF, 60, "1 of 2")) == [
        "Approval 1 of 2: bash  MEDIUM risk  c1",
        "  why: bash asks",
        "  workspace: /w",
        "  command: 2 lines, without a newline at the end",
        "  │ a",
        "  │ b",
        "  timeout: 5",
        "  x\\ny: z",
    ]


def test_high_risk_carries_a_highlighted_warning() -> None:
    page = approval_page(approval("c1", "bash", {}, risk="high"), Path("/w"), _OFF, 100, "")

    assert page[0].plain == "Approval: bash  HIGH risk  c1"
    assert page[1].plain.split(".")[0] == "  ! This may be impossible to undo"
    assert "on red" in str(page[1].style)


def test_the_warning_is_folded_between_words() -> None:
    page = approval_page(approval("c1", "bash", {}, risk="high"), Path("/w"), _OFF, 50, "")

    assert _plain(page)[1:3] == ["  ! This may be impossible to undo. Read all of ", "    it before you answer. "]


def test_content_that_the_diff_shows_whole_is_not_shown_twice() -> None:
    preview = {"kind": "diff", "text": _NEW_FILE}
    item = approval("c1", "write_file", {"file_path": "a.txt", "content": "one\ntwo\n"}, preview=preview)

    assert _plain(approval_page(item, Path("/w"), _OFF, 80, ""))[3:] == [
        "  file_path: a.txt",
        "  content: 8 bytes: the added lines below",
        "       --- /dev/null",
        "       +++ a.txt",
        "       @@ -0,0 +1,2 @@",
        "     1 +one",
        "     2 +two",
    ]


def test_content_that_the_diff_does_not_show_whole_is_shown_in_full() -> None:
    preview = {"kind": "diff", "text": _NEW_FILE}
    item = approval("c1", "write_file", {"content": "one\nTWO\n"}, preview=preview)

    assert _plain(approval_page(item, Path("/w"), _OFF, 80, ""))[3:6] == [
        "  content: 2 lines",
        "  │ one",
        "  │ TWO",
    ]


def test_arguments_edited_at_the_prompt_are_told_apart_from_the_models() -> None:
    item = approval("c1", "write_file", {"content": "mine"}, preview={"kind": "text", "text": "as edited"})

    assert _plain(approval_page(item, Path("/w"), _OFF, 80, "", is_edited=True))[3:] == [
        "  content: mine",
        "  These are your edited arguments, not the model's.",
        "  this would:",
        "  │ as edited",
    ]


def test_a_long_argument_is_folded_and_never_cut() -> None:
    command = "x" * 500

    page = _plain(approval_page(approval("c1", "bash", {"command": command}), Path("/w"), _OFF, 50, ""))

    assert "".join(line[11:] for line in page[3:]) == command


def test_a_recovery_shows_what_happened_times_output_and_finding() -> None:
    item = recovery(
        "c1",
        "bash",
        {"command": "make"},
        reason="never_started",
        approved_at="2026-11-28T01:00:00.000Z",
        partial_output="half\n",
        finding="the file is as before",
        finding_verdict="not_applied",
    )

    assert _plain(recovery_page(item, 100, "")) == [
        "Interrupted: bash  MEDIUM risk  c1",
        "  It was approved but never started: nothing happened, and a retry is safe.",
        "  attempt: 1",
        "  approved: 2026-11-28T01:00:00.000Z",
        "  command: make",
        "  output so far:",
        "  │ half",
        "  finding: not applied: the file is as before",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("g\u0456t status", [("g\u0456t", "U+0456 CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I")]),
        ("r\u039c r\u039c", [("r\u039c", "U+039C GREEK CAPITAL LETTER MU")]),
        ("привет мир, größe, naïve, 漢字kana, x²", []),
        ("plain", []),
    ],
)
def test_words_that_mix_latin_letters_with_others_are_told(text: str, found: list[tuple[str, str]]) -> None:
    assert list(mixed_alphabets({"command": text, "timeout": 5})) == found
