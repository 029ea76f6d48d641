from typing import get_args

import pytest

from graph_agent.cli.errors import exit_code_of
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.session.turn_result import TurnStatus
from tests.fakes.scripted_session import approval, recovery, rest

_APPROVAL = approval("call-a", "bash", {"command": "ls"})
_RECOVERY = recovery("call-b", "bash", {"command": "make"})


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("done", 0),
        ("failed", 1),
        ("resumable", 1),
        ("awaiting_approval", 3),
        ("interrupted", 4),
        ("limit", 5),
        ("model_error", 6),
        ("held", 7),
        ("stopped", 130),
    ],
)
def test_each_status_has_its_code(status: TurnStatus, code: int) -> None:
    assert exit_code_of(rest(status)) == code


def test_no_status_is_without_a_code() -> None:
    assert [exit_code_of(rest(status)) for status in get_args(TurnStatus)].count(ExitCode.DONE) == 1


def test_open_approvals_end_with_3_and_recovery_wins_over_them() -> None:
    assert exit_code_of(rest("awaiting_approval", questions=(_APPROVAL,))) == 3
    assert exit_code_of(rest("awaiting_approval", questions=(_APPROVAL, _RECOVERY))) == 4


def test_a_turn_whose_answer_tells_that_nothing_was_done_has_failed() -> None:
    assert exit_code_of(rest("done", "Not understood", unmet="not understood")) == 1
