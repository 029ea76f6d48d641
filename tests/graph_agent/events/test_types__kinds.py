from itertools import chain
from typing import get_args

from graph_agent.calls import STATUSES, allowed_answers
from graph_agent.events import AnswerKind, ShellEnd
from tools.shell_ops.background import ShellEndReason


def test_every_kind_of_answer_settles_some_question() -> None:
    calls = [{"status": status, "requires_input": wants} for status in STATUSES for wants in (False, True)]

    assert set(chain.from_iterable(map(allowed_answers, calls))) == set(get_args(AnswerKind))


def test_a_shell_that_ended_unasked_ended_for_any_reason_but_a_call_of_bash_kill() -> None:
    assert set(get_args(ShellEnd)) == set(get_args(ShellEndReason)) - {"kill"}
