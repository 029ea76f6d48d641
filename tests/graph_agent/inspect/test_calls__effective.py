from dataclasses import replace
from typing import Any

import pytest

from graph_agent.calls import FINAL
from graph_agent.inspect.calls import CallView, effective_record, thread_status
from graph_agent.ports.read_store import Attempt, StandingAnswer
from tests.fakes.database_rows import record_of

_CLAIMED = Attempt(1, "executing", None, None)
_DONE = Attempt(1, "success", "then", {"status": "success", "output": "built", "error": None})
_ANSWER = StandingAnswer("approve", "", "cli pid 7", "then", None)


@pytest.mark.parametrize(
    ("record", "attempts", "is_held", "changed"),
    [
        (record_of("executing"), (_CLAIMED,), True, {}),
        (
            record_of("executing"),
            (_CLAIMED,),
            False,
            {"status": "interrupted", "stored_status": "executing", "reason": "outcome_unknown", "started": True},
        ),
        (
            record_of("executing"),
            (replace(_CLAIMED, started_at="now"),),
            False,
            {
                "status": "interrupted",
                "stored_status": "executing",
                "reason": "outcome_unknown",
                "started": True,
                "started_at": "now",
            },
        ),
        (
            record_of("executing"),
            (),
            False,
            {"status": "interrupted", "stored_status": "executing", "reason": "never_started", "started": False},
        ),
        (
            record_of("executing"),
            (Attempt(1, "not_started", None, None),),
            False,
            {"status": "interrupted", "stored_status": "executing", "reason": "never_started", "started": False},
        ),
        (
            record_of("pending", approved_at="then", started=False),
            (),
            False,
            {"status": "interrupted", "stored_status": "pending", "reason": "never_started", "started": False},
        ),
        (record_of("pending", approved_at="then"), (), True, {}),
        (record_of("pending"), (), False, {}),
        (record_of("awaiting_approval"), (), False, {}),
        (
            record_of("interrupted"),
            (_DONE,),
            False,
            {
                "status": "success",
                "stored_status": "interrupted",
                "result": "built",
                "error_msg": None,
                "ended_at": "then",
                "started": True,
            },
        ),
    ],
)
def test_a_reader_shows_the_status_the_next_life_would_give(
    record: dict[str, Any], attempts: tuple[Attempt, ...], is_held: bool, changed: dict[str, Any]
) -> None:
    assert effective_record(record, attempts, is_held=is_held) == {**record, **changed}


@pytest.mark.parametrize("status", sorted(FINAL))
def test_a_final_record_is_shown_as_it_is_stored(status: str) -> None:
    record = record_of(status)

    assert effective_record(record, (_DONE,), is_held=False) == record


def test_interrupted_calls_come_before_approvals_and_both_before_the_living_process() -> None:
    waiting = CallView("t1", record_of("awaiting_approval"))
    broken = CallView("t1", record_of("interrupted"))
    answered = CallView("t1", record_of("awaiting_approval"), _ANSWER)

    statuses = [
        thread_status([waiting, broken], is_idle=False, is_held=True),
        thread_status([waiting], is_idle=False, is_held=True),
        thread_status([answered], is_idle=False, is_held=True),
        thread_status([answered], is_idle=False, is_held=False),
        thread_status([CallView("t1", record_of("interrupted"), _ANSWER)], is_idle=False, is_held=False),
        thread_status([CallView("t1", record_of("pending"))], is_idle=False, is_held=False),
        thread_status([broken], is_idle=True, is_held=False),
    ]

    assert statuses == [
        "interrupted",
        "waiting",
        "running",
        "waiting",
        "interrupted",
        "resumable",
        "idle",
    ]
