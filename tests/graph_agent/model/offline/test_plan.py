from collections.abc import Sequence

import pytest

from graph_agent.model.offline.parser import Command
from graph_agent.model.offline.plan import CallResult, Outcome, PlannedCall, plan_command

TOOLS = frozenset(("ls", "read_file", "write_file", "bash"))


def run(command: Command, results: Sequence[CallResult]) -> tuple[list[PlannedCall], Outcome]:
    steps, left = plan_command(command, TOOLS), list(results)
    calls: list[PlannedCall] = []
    try:
        calls.append(next(steps))
        while left:
            calls.append(steps.send(left.pop(0)))
    except StopIteration as ended:
        return calls, ended.value
    raise AssertionError(f"{command} asks for more after {calls}")


def fine(text: str) -> CallResult:
    return CallResult(text, is_error=False)


def fairun(text: str) -> CallResult:
    return CallResult(text, is_error=True)


def test_one_call_gives_an_outcome_with_the_tools_own_words() -> None:
    assert run(Command("list", "src"), [fine("a\nb")]) == (
        [PlannedCall("ls", {"path": "src"})],
        Outcome("done", "src", "a\nb"),
    )
    assert run(Command("list", "src"), [fairun("no")])[1] == Outcome("failed", "src", "no")
    assert run(Command("todo"), []) == ([], Outcome("missing", "todo_read"))


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (Command("read", "f"), {"file_path": "f"}),
        (Command("read", "f", first=3), {"file_path": "f", "offset": 3}),
        (Command("read", "f", first=3, last=5), {"file_path": "f", "offset": 3, "limit": 3}),
        (Command("read", "f", first=5, last=3), {"file_path": "f", "offset": 5, "limit": 1}),
    ],
)
def test_named_lines_become_offset_and_limit(command: Command, arguments: dict[str, object]) -> None:
    assert run(command, [fine("")])[0] == [PlannedCall("read_file", arguments)]


def test_a_rejected_write_is_not_tried_again() -> None:
    refused = "Not run: the user rejected this call. The user said: read it first"

    calls, report = run(Command("create", "f", "x\n"), [fairun(refused)])

    assert (len(calls), report) == (1, Outcome("failed", "f", refused))


def test_a_write_that_fails_again_after_reading_is_the_end() -> None:
    unread = fairun("exists and was not read in this conversation")

    calls, report = run(Command("create", "f", "x\n"), [unread, fine("     1\told"), fairun("disk full")])

    assert ([call.tool for call in calls], report) == (
        ["write_file", "read_file", "write_file"],
        Outcome("failed", "f", "disk full"),
    )


def test_a_listing_is_turned_back_into_the_file_and_changed() -> None:
    listing = fine("     1\t  a\tb \n     2\t\n     3\t3\tx")

    appended, _ = run(Command("append", "f", "end\n"), [listing, fine("ok")])
    replaced, _ = run(Command("replace", "f", "a", "A"), [listing, fine("ok")])

    assert appended[1] == PlannedCall("write_file", {"file_path": "f", "content": "  a\tb \n\n3\tx\nend\n"})
    assert replaced[1] == PlannedCall("write_file", {"file_path": "f", "content": "  A\tb \n\n3\tx\n"})


@pytest.mark.parametrize(
    "listing",
    [
        "     2\tb",
        "     1\ta\n     3\tc",
        "     1\ta\n[lines 1 to 1 of 9; continue with offset=2]",
        "     1\ta [… line cut, it has 5000 characters]",
        "",
    ],
)
def test_a_listing_that_is_not_clearly_the_whole_file_is_not_written_back(listing: str) -> None:
    assert run(Command("append", "f", "x"), [fine(listing)])[1] == Outcome("unreadable", "f")
