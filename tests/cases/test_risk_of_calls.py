"""The risk of a command as a person meets it: what only reads runs, a question says what the command would do."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cases.bench import CTRL_D, KEYS, SetUp, bash, play
from tests.fakes.openai_server import TCS, TXT
from tests.fakes.sandboxes import needs
from tests.scenarios.command import until

_CALLS = (bash("c1", "ls"), bash("c2", "touch a"), bash("c3", "rm -r build"))


def _asked(out: str) -> list[tuple[str, str, str]]:
    approvals: list[dict[str, Any]] = json.loads(out)["pending_approvals"]
    return [(one["call_id"], one["risk"], one["risk_reason"]) for one in approvals]


def test_in_the_sandbox_reading_runs_and_each_question_names_what_the_command_does(set_up: SetUp) -> None:
    needs("bubblewrap")
    bench = set_up(TCS(*_CALLS), TXT("ok"))
    (bench.workspace / "build").mkdir()

    asked = bench.ask("go", "--thread", "t1", "--output", "json")
    listed = bench.command.json("approvals", "list")["approvals"]
    ended = bench.ask("--resume", "t1", "--approve", "c2", "--approve", "c3")
    calls = bench.command.json("calls", "t1")["calls"]
    page = bench.command("calls", "c3").stdout

    assert (asked.code, _asked(asked.out)) == (3, [("c2", "medium", "writes a"), ("c3", "high", "deletes build")])
    assert [one["risk_reason"] for one in listed] == ["writes a", "deletes build"]
    assert (ended.ending, bench.read("a"), (bench.workspace / "build").exists()) == ((0, "ok"), b"", False)
    assert [(one["risk"], one["risk_reason"], one["decision"]) for one in calls] == [
        ("low", "only reads", "allow"),
        ("medium", "writes a", "approve"),
        ("high", "deletes build", "approve"),
    ]
    assert "risk: high, deletes build" in page


def test_the_prompt_shows_risk_and_reason(set_up: SetUp) -> None:
    needs("bubblewrap")
    bench = set_up(TCS(*_CALLS), TXT("end"))
    chat = bench.chat("chat", "go", "--thread", "t1")

    play(chat, "MEDIUM · writes a", (KEYS, "n"), "HIGH ·", "deletes build", (KEYS, "n"), ("end", CTRL_D))

    assert (chat.ends(), bench.read("a")) == (0, None)


@pytest.mark.parametrize("config", ['sandbox = "off"\n', '[policy]\nshell_risk = "declared"\n'])
def test_without_a_sandbox_or_with_the_declared_risk_every_command_asks(set_up: SetUp, config: str) -> None:
    bench = set_up(TCS(*_CALLS), TXT("ok"))
    bench.configure(config)

    asked = bench.ask("go", "--thread", "t1", "--output", "json")

    assert (asked.code, [(call, risk) for call, risk, _ in _asked(asked.out)]) == (
        3,
        [("c1", "high"), ("c2", "high"), ("c3", "high")],
    )


def test_a_background_command_is_judged_like_any_other(set_up: SetUp) -> None:
    needs("bubblewrap")
    bench = set_up(
        TCS(bash("c1", "ls", background=True), bash("c2", "touch a", background=True)), TXT("ok"), TXT("ok")
    )

    asked = bench.ask("go", "--thread", "t1", "--output", "json")

    assert (asked.code, _asked(asked.out)) == (3, [("c2", "medium", "writes a")])


def _runs(words: bytes) -> bool:
    """Whether a process of this command line exists."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (folder / "cmdline").read_bytes() == words:
                return True
    return False


def test_a_command_that_ran_without_a_question_is_not_repeated_after_a_kill(set_up: SetUp) -> None:
    needs("bubblewrap")
    bench = set_up(TCS(bash("c1", "tail -n 3 -f begun-84517")), TXT("ok"), TXT("ok"))
    (bench.workspace / "begun-84517").write_text("x\n")
    process = bench.command.start("run", "go", "--thread", "t1")
    until(lambda: _runs(b"tail\0-n\x003\0-f\0begun-84517\0"))
    bench.command.kill(process)

    resumed = bench.ask("--resume", "t1", "--output", "json")
    [call] = bench.command.json("calls", "t1")["calls"]

    assert (resumed.code, call["status"], call["reason"], call["risk"]) == (
        4,
        "interrupted",
        "outcome_unknown",
        "low",
    )


@pytest.mark.parametrize(
    ("call", "before", "after"),
    [
        (bash("c2", "ls > listing"), ("", "acceptEdits"), ('[policy]\nask = ["bash(ls*)"]\n', "acceptEdits")),
        (("c2", "write_file", {"file_path": "listing", "content": "x"}), ("", "acceptEdits"), ("", "default")),
        (
            ("c2", "read_file", {"file_path": "f"}),
            ("", "default"),
            ('[policy]\nask = ["read_file(f)"]\n', "default"),
        ),
        (bash("c2", "ls"), ("", "default"), ('sandbox = "off"\n', "default")),
    ],
    ids=["another rule", "another mode", "a rule for reading", "no sandbox"],
)
def test_a_call_that_policy_allowed_asks_where_it_would_ask_by_the_time_it_may_start(
    set_up: SetUp, call: Any, before: tuple[str, str], after: tuple[str, str]
) -> None:
    needs("bubblewrap")
    bench = set_up(TCS(bash("c1", "touch a"), call), TXT("ok"))
    (bench.workspace / "f").write_text("text\n")
    allowed = '[policy]\nallow = ["bash(ls*)"]\n' if before[1] == "acceptEdits" else before[0]
    bench.configure(allowed)
    first = bench.ask("go", "--thread", "t1", "--mode", before[1], "--output", "json")
    bench.configure(after[0])

    second = bench.ask("--resume", "t1", "--approve", "c1", "--mode", after[1], "--output", "json")
    calls = {one["call_id"]: one["status"] for one in bench.command.json("calls", "t1")["calls"]}

    assert [one[0] for one in _asked(first.out)] == ["c1"]
    assert [one[0] for one in _asked(second.out)] == ["c2"]
    assert calls == {"c1": "success", "c2": "awaiting_approval"}
    assert bench.read("listing") is None
