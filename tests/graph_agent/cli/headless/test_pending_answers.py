from pathlib import Path

import pytest

from graph_agent.cli.headless.pending_answers import PendingAnswers, answer_pending
from graph_agent.errors import AnswerRefused, UnknownId, UsageError
from graph_agent.events import EventBus
from graph_agent.session.turn_result import OpenQuestion
from tests.fakes.scripted_session import ScriptedSession, Turn, approval, recovery, rest

_A = approval("call-aaaa", "bash", {"command": "a"})
_B = approval("call-bbbb", "bash", {"command": "b"})
_NEVER = recovery("call-cccc", "bash", {"command": "c"}, reason="never_started")
_UNKNOWN = recovery("call-dddd", "bash", {"command": "d"}, reason="outcome_unknown", finding_verdict="unknown")
_APPLIED = recovery(
    "call-eeee",
    "write_file",
    {"file_path": "e"},
    reason="outcome_unknown",
    finding="the file is as intended",
    finding_verdict="already_applied",
)


async def _settled(folder: Path, by: PendingAnswers, *questions: OpenQuestion) -> tuple[str, list[tuple[str, ...]]]:
    is_broken = any(item.question.kind == "recovery" for item in questions)
    opening = Turn(rest("interrupted" if is_broken else "awaiting_approval", questions=questions))
    session = ScriptedSession(EventBus(), folder, [Turn(rest(answer="ok"))], opening=opening)
    after = await answer_pending(session, await session.start(), by)
    return after.status, [entry[1:] for entry in session.log if entry[0] == "decide"]


async def test_without_flags_everything_stays_open(tmp_path: Path) -> None:
    assert await _settled(tmp_path, PendingAnswers(), _A, _NEVER) == ("interrupted", [])


async def test_all_approves_what_is_open_except_what_is_rejected_by_name(tmp_path: Path) -> None:
    by = PendingAnswers(approve=("all",), reject=("call-bbbb",), reason="not now")

    assert await _settled(tmp_path, by, _A, _B) == (
        "done",
        [("call-aaaa", "approve", ""), ("call-bbbb", "reject", "not now")],
    )


async def test_a_call_is_named_by_its_end_or_with_its_thread(tmp_path: Path) -> None:
    by = PendingAnswers(approve=("aaaa", "thread-1:call-bbbb"))

    assert (await _settled(tmp_path, by, _A, _B))[0] == "done"


async def test_one_answer_of_two_leaves_the_run_waiting(tmp_path: Path) -> None:
    assert (await _settled(tmp_path, PendingAnswers(approve=("call-aaaa",)), _A, _B))[0] == "awaiting_approval"


async def test_a_name_that_fits_no_open_call_decides_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        UnknownId, match="'call-zzzz' matches no call waiting for approval here: call-aaaa, call-bbbb"
    ):
        await _settled(tmp_path, PendingAnswers(approve=("call-zzzz",)), _A, _B)
    with pytest.raises(UnknownId, match="'call' matches several calls"):
        await _settled(tmp_path, PendingAnswers(approve=("call",)), _A, _B)


async def test_all_refuses_what_is_open_except_what_is_approved_by_name(tmp_path: Path) -> None:
    by = PendingAnswers(approve=("call-bbbb",), reject=("all",), reason="not now")

    assert await _settled(tmp_path, by, _A, _B) == (
        "done",
        [("call-aaaa", "reject", "not now"), ("call-bbbb", "approve", "")],
    )


def test_all_cannot_be_both_approved_and_refused() -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        PendingAnswers(approve=("all",), reject=("all",)).require_pending_calls(may_exist=True)


async def test_the_same_call_cannot_be_approved_and_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="both approved and rejected"):
        await _settled(tmp_path, PendingAnswers(approve=("call-aaaa",), reject=("call-aaaa",)), _A)


async def test_retry_safe_retries_the_never_started_takes_the_applied_and_leaves_the_rest(tmp_path: Path) -> None:
    status, decided = await _settled(tmp_path, PendingAnswers(recover="retry-safe"), _NEVER, _UNKNOWN, _APPLIED)

    assert status == "interrupted"
    assert decided == [("call-cccc", "retry", ""), ("call-eeee", "done", "the file is as intended")]


async def test_cancel_gives_every_interrupted_call_up_and_answers_no_approval(tmp_path: Path) -> None:
    status, decided = await _settled(tmp_path, PendingAnswers(recover="cancel"), _A, _UNKNOWN)

    assert (status, decided) == ("awaiting_approval", [("call-dddd", "cancel", "")])


async def test_an_answer_that_came_too_late_is_told_with_the_one_that_stands(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"call-aaaa": "reject"}')
    opening = Turn(rest("awaiting_approval", questions=(_A,)))
    session = ScriptedSession(EventBus(), tmp_path, opening=opening, elsewhere=elsewhere)

    with pytest.raises(AnswerRefused, match="already has an answer: reject by cli pid 99"):
        await answer_pending(session, await session.start(), PendingAnswers(approve=("all",)))
