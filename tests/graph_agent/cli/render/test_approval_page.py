import sys
from pathlib import Path
from typing import Any

import pytest

from graph_agent.cli.render.approval_page import Page, approval_page, call_rows, question_page, recovery_page
from graph_agent.ports import SandboxInfo, no_sandbox_info
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.wording import mixed_alphabets
from tests.fakes.scripted_session import approval, recovery
from tools.diff import diff_texts

_OFF = no_sandbox_info()
_ON = SandboxInfo("bubblewrap", "files can be written in the workspace only, there is no network", is_active=True)
_WORKSPACE = Path("/w")
_OLD = "".join(f"line {number}\n" for number in range(1, 41))
_NEW = _OLD.replace("line 20\n", "line twenty\n")


def _diff(before: str | None, after: str, path: str = "/w/a.txt") -> dict[str, Any]:
    return {"kind": "diff", "text": diff_texts(path, before, after, digests=(None, "")).unified}


def _plain(lines: Any) -> list[str]:
    return [line.plain for line in lines]


def _page(item: OpenQuestion, width: int = 80, sandbox: SandboxInfo = _OFF, **named: Any) -> Page:
    return approval_page(item, _WORKSPACE, sandbox, width, "", **named)


def _shown(item: OpenQuestion, width: int = 80, sandbox: SandboxInfo = _OFF, **named: Any) -> list[str]:
    return _plain(_page(item, width, sandbox, **named).excerpt()[0])


_CALLS: dict[str, tuple[OpenQuestion, list[str]]] = {
    "a command": (
        approval(
            "c1",
            "bash",
            {"command": "rm -rf build && make\nls", "description": "clean", "timeout": 5, "background": True},
            risk="high",
            risk_reason="deletes build",
            rule="risk high",
            reason="bash has high risk: it deletes build.",
            preview={
                "kind": "text",
                "text": "runs    rm -rf build\nruns    make\nwrites  /etc/x  (not in it)\nin      /w",
            },
        ),
        [
            "bash                                                       HIGH · deletes build",
            "  $ rm -rf build && make",
            "  │ ls",
            "  description: clean",
            "  timeout: 5 · background: true",
            "  writes  /etc/x  (not in it)",
            "  sandbox: files can be written in the workspace only, there is no network",
        ],
    ),
    "a quoted command of which nobody can tell what it writes": (
        approval(
            "c1",
            "bash",
            {"command": "sleep 1;  echo \"a b\" > 'c d'"},
            risk="high",
            risk_reason="not known before it runs: it writes a file after sleep",
            rule="unknown target",
            reason="The file that the command writes is unknown: it writes a file after sleep.",
            preview={"kind": "text", "text": "runs    sleep 1\nruns    echo a b\nwrites  /w/c d"},
        ),
        [
            "bash              HIGH · not known before it runs: it writes a file after sleep",
            "  $ sleep 1;  echo \"a b\" > 'c d'",
            "  sandbox: files can be written in the workspace only, there is no network",
        ],
    ),
    "a command in another folder that a rule asks about": (
        approval(
            "c1",
            "bash",
            {"command": "make"},
            risk_reason="runs make",
            rule="ask bash(make)",
            reason="The rule 'bash(make)' asks.",
            preview={"kind": "text", "text": "in      /w/sub"},
        ),
        [
            "bash                                                         MEDIUM · runs make",
            "  The rule 'bash(make)' asks.",
            "  $ make",
            "  in      /w/sub",
        ],
    ),
    "a change": (
        approval(
            "c1",
            "edit_file",
            {"file_path": "a.txt", "old_string": "line 20\n", "new_string": "line twenty\n"},
            kind="write",
            preview=_diff(_OLD, _NEW),
        ),
        [
            "edit_file a.txt  +1 −1                                  MEDIUM · changes a file",
            "    19  line 19",
            "    20 -line 20",
            "    20 +line twenty",
            "    21  line 21",
        ],
    ),
    "a change with a line around it": (
        approval(
            "c1",
            "edit_file",
            {"file_path": "./a.txt", "edits": [{"old_string": "18\nline 19\nline 20", "new_string": "twenty"}]},
            kind="write",
            preview=_diff(_OLD, _NEW),
        ),
        [
            "edit_file a.txt  +1 −1                                  MEDIUM · changes a file",
            "  file_path: ./a.txt",
            "    18  line 18",
            "    19  line 19",
            "    20 -line 20",
            "    20 +line twenty",
            "    21  line 21",
            "    22  line 22",
        ],
    ),
    "two changes far apart": (
        approval(
            "c1",
            "write_file",
            {"file_path": "/w/a.txt", "content": _NEW.replace("line 30\n", "")},
            kind="write",
            preview=_diff(_OLD, _NEW.replace("line 30\n", "")),
        ),
        [
            "write_file a.txt  +1 −2                                 MEDIUM · changes a file",
            "    19  line 19",
            "    20 -line 20",
            "    20 +line twenty",
            "    21  line 21",
            "       ⋮",
            "    29  line 29",
            "    30 -line 30",
            "    30  line 31",
        ],
    ),
    "a new file": (
        approval(
            "c1",
            "write_file",
            {"file_path": "a", "content": "x\ny"},
            kind="write",
            preview=_diff(None, "x\ny", "/w/a"),
        ),
        [
            "write_file a                                            MEDIUM · creates a file",
            "  new file, 2 lines, 3 bytes",
            "     1 +x",
            "     2 +y",
            "       \\ No newline at end of file",
        ],
    ),
    "another tool": (
        approval(
            "c1",
            "mcp__hub__x",
            {"a": {"b": 1}, "t": "x\ny\n", "x\ny": "z"},
            risk="low",
            preview={"kind": "text", "text": "y\nmore"},
        ),
        [
            "mcp__hub__x                                    LOW · runs on the MCP server hub",
            '  a: {"b": 1}',
            "  t: 2 lines, 4 bytes",
            "  │ x",
            "  │ y",
            "  x\\ny: z",
            "  more",
        ],
    ),
}


@pytest.mark.parametrize("name", _CALLS)
def test_the_page_of_an_ordinary_call_is_short_and_says_nothing_twice(name: str) -> None:
    item, lines = _CALLS[name]

    assert _shown(item, sandbox=_ON) == lines
    assert len(lines) <= 9
    for width in (60, 80, 120):
        assert all(line.cell_len <= width for line in _page(item, width, _ON).excerpt()[0])


@pytest.mark.parametrize("name", _CALLS)
def test_every_byte_of_the_arguments_is_in_the_whole(name: str) -> None:
    item, _ = _CALLS[name]
    whole = "\n".join(_plain(_page(item, 1000, _ON).whole()))

    for value in item.call["arguments"].values():
        for line in str(value).split("\n") if isinstance(value, str) else ():
            assert line in whole


def test_content_that_the_diff_does_not_show_is_shown_in_full() -> None:
    item = approval("c1", "write_file", {"content": "one\nTWO\n"}, preview=_diff(None, "one\ntwo\n"))

    assert _shown(item)[1:4] == ["  content: 2 lines, 8 bytes", "  │ one", "  │ TWO"]


def test_a_content_that_differs_from_the_file_elsewhere_is_shown_in_full() -> None:
    item = approval("c1", "write_file", {"content": f"more\n{_NEW}"}, preview=_diff(_OLD, _NEW))

    assert "  │ more" in _shown(item)


def test_a_long_new_file_whose_stored_diff_is_cut_is_shown_from_its_content() -> None:
    content = "".join(f"line {number}\n" for number in range(1, 5029))
    preview = {**_diff(None, "line 1\n"), "full": "blob:1"}
    page = _page(approval("c1", "write_file", {"file_path": "a.txt", "content": content}, preview=preview))
    lines, hidden = page.excerpt()

    assert hidden == 4990
    assert _plain(lines)[:3] == [_plain(page.head)[0], "  new file, 5,028 lines, 49 KB", "     1 +line 1"]
    assert _plain(lines)[-3:] == ["  5027 +line 5027", "  5028 +line 5028", _plain(page.head)[0]]
    assert "  … 4,990 lines not shown" in _plain(lines)
    assert len(lines) == 42


def test_the_work_of_showing_a_diff_grows_with_its_lines() -> None:
    counts = []
    for lines in (100, 400):
        before, after = ("".join(f"{word} {number}\n" for number in range(lines)) for word in ("old", "new"))
        item = approval(
            "c1", "write_file", {"file_path": "a.txt", "content": after}, kind="write", preview=_diff(before, after)
        )
        calls = list[str]()
        sys.setprofile(lambda _frame, what, _arg: calls.append(what))  # noqa: B023 - called in this round alone
        _page(item)
        sys.setprofile(None)
        counts.append(len(calls))

    assert counts[1] <= 4.5 * counts[0]


def test_arguments_edited_at_the_prompt_are_told_apart_from_the_models() -> None:
    item = approval("c1", "write_file", {"content": "mine"}, preview={"kind": "text", "text": "as edited"})

    assert _shown(item, is_edited=True)[1:] == [
        "  content: mine",
        "  These are your edited arguments, not the model's.",
        "  as edited",
    ]


def test_a_long_argument_is_folded_and_never_cut() -> None:
    command = "x" * 500

    page = _shown(approval("c1", "bash", {"command": command}), 50)

    assert "".join(line[4:] for line in page[1:]) == command


def test_a_risk_too_long_for_the_title_is_wrapped_below_it() -> None:
    reason = "deletes what find finds, uses the network: curl"

    shown = _shown(approval("c1", "bash", {"command": "x"}, risk="high", risk_reason=reason), 40)

    assert shown[:3] == ["bash", "  HIGH · deletes what find finds, uses", "  the network: curl"]


@pytest.mark.parametrize("name", ["off", "none"])
def test_a_missing_sandbox_is_on_the_page_of_every_command(name: str) -> None:
    sandbox = SandboxInfo(name, "commands run with all your rights")

    assert (
        "commands run with all your rights" in _shown(approval("c1", "bash", {"command": "x"}), sandbox=sandbox)[-1]
    )


def test_several_calls_are_listed_in_columns_with_risk_and_reason() -> None:
    items = [
        approval(
            "c1",
            "bash",
            {"command": "npm i"},
            summary="$ npm i\x1b[2J",
            risk="high",
            risk_reason="uses the network",
        ),
        _CALLS["a change"][0],
        approval("c3", "ask_user", {"question": "why?"}, summary="why?", requires_input=True),
        recovery("c4", "bash", {"command": "make"}, summary="$ make", reason="never_started"),
    ]

    assert [line.rstrip() for line in _plain(call_rows(items, _WORKSPACE, 80))] == [
        "  1  bash  npm i\\x1b[2J                                 HIGH · uses the network",
        "  2  edit_file a.txt  +1 −1                             MEDIUM",
        "  3  ask_user  why?                                     question",
        "  4  bash  make                                         never started",
    ]


def test_a_plan_is_shown_without_its_answers() -> None:
    page = question_page(approval("c1", "present_plan", {"plan": "1. add it\n"}, requires_input=True), 80, "")

    assert _plain(page.excerpt()[0]) == ["Plan", "  1. add it"]


_STARTED = {"reason": "outcome_unknown", "started_at": "2026-11-28T01:00:00.000Z"}


@pytest.mark.parametrize(
    ("item", "state", "lines"),
    [
        (
            recovery(
                "c1",
                "bash",
                {"command": "make"},
                **_STARTED,
                partial_output="".join(f"{number}\n" for number in range(20)),
                processes=(7, 8),
                finding="There is no way to check.",
                finding_verdict="unknown",
            ),
            "outcome unknown",
            [
                "  $ make",
                "  2 processes still running (pid 7, 8); a retry ends them first",
                "  output so far:",
                "  │ … 12 lines before",
                *(f"  │ {number}" for number in range(12, 20)),
                "  There is no way to check.",
            ],
        ),
        (
            recovery(
                "c1",
                "write_file",
                {"file_path": "a"},
                **_STARTED,
                finding="It is there.",
                finding_verdict="already_applied",
            ),
            "outcome unknown",
            ["  file_path: a", "  It is there. d marks it as done."],
        ),
        (
            recovery("c1", "bash", {"command": "make"}, reason="never_started"),
            "never started",
            ["  $ make", "  It was approved and never started: a retry is safe."],
        ),
    ],
)
def test_a_recovery_shows_what_happened_times_output_and_finding(
    item: OpenQuestion, state: str, lines: list[str]
) -> None:
    page = recovery_page(item, 80, "")
    shown, _ = page.excerpt()

    assert shown[0].plain == f"{item.call['tool_name']}{state.rjust(79 - len(item.call['tool_name']))}"
    assert [line for line in _plain(shown[1:]) if "attempt 1" not in line] == lines
    assert any("attempt 1" in line for line in _plain(shown))
    if item.partial_output:
        assert "  │ 0" in _plain(page.whole())


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
