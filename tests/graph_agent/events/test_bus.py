import logging

import pytest

from graph_agent.events import Event, EventBus, StepStarted, WarningIssued


def test_events_are_numbered_without_gaps_and_delivered_in_order() -> None:
    bus, seen = EventBus(), list[tuple[int, Event]]()
    bus.subscribe(lambda number, event: seen.append((number, event)))

    bus.publish(StepStarted(1))
    bus.publish(WarningIssued("w"))

    assert seen == [(1, StepStarted(1)), (2, WarningIssued("w"))]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (StepStarted(1), [(1, StepStarted(1)), (2, WarningIssued("early")), (3, WarningIssued("late"))]),
        (None, [(1, WarningIssued("early")), (2, WarningIssued("late"))]),
    ],
)
def test_what_is_published_before_the_event_that_begins_waits_for_it_or_for_its_release(
    first: Event | None, told: list[tuple[int, Event]]
) -> None:
    bus, seen = EventBus(begins_with="step_started"), list[tuple[int, Event]]()
    bus.subscribe(lambda number, event: seen.append((number, event)))

    bus.publish(WarningIssued("early"))
    before = list(seen)
    if first is None:
        bus.release()
    else:
        bus.publish(first)
    bus.publish(WarningIssued("late"))

    assert (before, seen) == ([], told)


def test_a_failing_subscriber_is_logged_and_the_others_still_hear(caplog: pytest.LogCaptureFixture) -> None:
    bus, seen = EventBus(), list[int]()

    def fail(number: int, event: Event) -> None:
        raise RuntimeError(event.type)

    bus.subscribe(fail)
    bus.subscribe(lambda number, _: seen.append(number))
    with caplog.at_level(logging.ERROR):
        bus.publish(StepStarted(1))

    assert (seen, [record.message for record in caplog.records]) == (
        [1],
        ["subscriber failed on event 1 (step_started)"],
    )


def test_who_unsubscribed_hears_nothing_more() -> None:
    bus, seen = EventBus(), list[int]()
    unsubscribe = bus.subscribe(lambda number, _: seen.append(number))

    unsubscribe()
    unsubscribe()
    bus.publish(StepStarted(1))

    assert seen == []
