from dataclasses import replace

from graph_agent.graph.context_size import LearnedWindow, learned_from
from graph_agent.ports.model import ContextWindow

FIRST = LearnedWindow("m", 0).after_refusal(3_000, 2_700, ContextWindow())


def test_a_limit_that_the_model_named_stays_once_it_is_named_again() -> None:
    first = LearnedWindow("m", 0).after_refusal(9_000, 2_900, ContextWindow(), 2_900)
    other, again = (first.after_refusal(3_100, named, ContextWindow(), named) for named in (2_800, 2_900))

    assert (first.after_reply(2_800).tokens, other.is_confirmed) == (int(2_900 * 1.25), False)
    assert (
        again.after_reply(2_800) == again == LearnedWindow("m", 2_900, 3_100, is_confirmed=True, stated_limit=2_900)
    )


def test_what_settings_or_endpoint_say_anew_goes_before_it() -> None:
    learned = LearnedWindow("m", 0).after_refusal(3_000, 2_700, ContextWindow(8_000, "endpoint"))
    same, unasked = ContextWindow(8_000, "endpoint"), ContextWindow(9_000, "table")

    assert [learned.within(said).tokens for said in (same, unasked, ContextWindow(2_000))] == [2_700, 2_700, 2_000]
    assert learned.within(ContextWindow(8_001, "set")) == ContextWindow(8_001, "set")
    assert FIRST.within(ContextWindow(8_000, "table")) == ContextWindow(2_700, "assumed", reserve=0)
    assert FIRST.within(ContextWindow(8_000, "set")) == ContextWindow(8_000, "set")
    as_said = ContextWindow(2_700, "endpoint", reserve=500)
    assert replace(learned, configured_tokens=2_700).within(as_said) == as_said


def test_a_refusal_without_a_limit_loses_its_hold_with_every_request_taken_close_to_it() -> None:
    raised = FIRST.after_reply(1_349).after_reply(1_350).after_reply(10**9)

    assert (FIRST.tokens, raised.tokens, raised.is_confirmed) == (2_700, int(int(2_700 * 1.25) * 1.25), False)


def test_a_second_refusal_at_about_the_same_size_is_believed_and_one_at_another_is_not() -> None:
    near, far = (
        FIRST.after_refusal(4_400, 3_960, ContextWindow()),
        FIRST.after_refusal(9_000, 8_100, ContextWindow()),
    )

    assert (near.is_confirmed, near.after_reply(3_900)) == (True, near)
    assert (far.is_confirmed, far.tokens) == (False, 8_100)


def test_what_was_learned_belongs_to_its_model_and_reads_what_older_versions_kept() -> None:
    context = {"learned_limits": FIRST.as_state()}

    assert (learned_from(context, "m"), learned_from(context, "n"), learned_from({}, "m")) == (FIRST, None, None)
    assert learned_from({"learned_limits": {"model": "m", "tokens": 5}}, "m") == LearnedWindow("m", 5)
