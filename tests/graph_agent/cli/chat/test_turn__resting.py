from pathlib import Path

from graph_agent.cli.chat.turn_runner import format_result, format_status, has_fresh_budget
from graph_agent.events import EventBus
from graph_agent.ports.usage import usage_report
from tests.fakes.scripted_session import ScriptedSession, rest

_USED = usage_report({"input_tokens": 12_000, "output_tokens": 345, "total_tokens": 12_345, "requests": 2})


def test_a_turn_that_asked_a_model_ends_with_what_it_used() -> None:
    assert list(format_result(rest(usage=_USED))) == [
        ("2 requests, 12,000 in, 345 out, cost unknown", "dim"),
    ]
    assert list(format_result(rest(usage=usage_report({"requests": 3})))) == []


def test_an_error_and_what_to_do_about_it_are_told_once() -> None:
    failed = rest("model_error", error="down")
    paused = rest("limit", error="the turn was paused", budget="max_tokens")

    assert [text for text, _ in format_result(failed)] == [
        "down",
        "No answer from the model. /retry to try again.",
    ]
    assert [text for text, _ in format_result(paused, was_asked=True)] == [
        "Send new instructions, or continue with /retry."
    ]


def test_only_a_budget_of_the_turn_is_fresh_when_one_goes_on() -> None:
    budgets = ("max_steps", "max_tokens", "max_cost", "max_thread_tokens", "")

    assert [has_fresh_budget(rest("limit", budget=name)) for name in budgets] == [True, True, True, False, False]


def test_the_status_line_says_tokens_and_cost_once_there_are_any(tmp_path: Path) -> None:
    session = ScriptedSession(EventBus(), tmp_path)

    assert format_status(session, "no sandbox", {}) == (
        "scripted model · mode default · no sandbox · thread thread-1"
    )
    assert format_status(session, "no sandbox", _USED) == (
        "scripted model · mode default · no sandbox · 12.3k tokens · cost unknown · thread thread-1"
    )


def test_a_narrow_status_line_loses_what_matters_least_and_never_the_thread(tmp_path: Path) -> None:
    session = ScriptedSession(EventBus(), tmp_path)

    assert [format_status(session, "no sandbox", _USED, width) for width in (83, 70, 60, 40, 30, 5)] == [
        "scripted model · mode default · no sandbox · 12.3k tokens · cost unknown · thread-1",
        "scripted model · default · no sandbox · 12.3k tokens · thread-1",
        "scripted model · default · 12.3k tokens · thread-1",
        "default · 12.3k tokens · thread-1",
        "default · thread-1",
        "thre…",
    ]
