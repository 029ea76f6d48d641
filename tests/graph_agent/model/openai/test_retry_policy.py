import random

from graph_agent.model.openai.endpoint import RetryPolicy
from graph_agent.model.openai.errors import Failure, FailureKind


class NoJitter(random.Random):
    def random(self) -> float:
        return 0.0


class FullJitter(random.Random):
    def random(self) -> float:
        return 1.0


def waits(kind: FailureKind, jitter: random.Random) -> list[float]:
    retry_policy, failure, found = RetryPolicy(jitter), Failure(kind, "busy."), []
    while (wait := retry_policy.next_delay(failure)) is not None:
        found.append(wait)
    return found


def test_waits_double_from_half_a_second_and_end() -> None:
    assert waits("busy", NoJitter()) == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]
    assert waits("empty", NoJitter()) == [0.5, 1.0, 2.0]
    assert waits("final", NoJitter()) == waits("too_long", NoJitter()) == []


def test_an_unreachable_server_is_given_up_within_five_seconds() -> None:
    assert waits("unreachable", FullJitter()) == [0.625, 1.25]


def test_jitter_adds_a_quarter_at_most() -> None:
    assert waits("busy", FullJitter()) == [wait * 1.25 for wait in waits("busy", NoJitter())]


def test_kinds_mixed_together_do_not_add_up_to_more_tries() -> None:
    retry_policy = RetryPolicy(NoJitter())
    kinds: list[FailureKind] = ["busy", "broken", "empty"] * 4

    given = [retry_policy.next_delay(Failure(kind, "x.")) for kind in kinds]

    assert (sum(wait is not None for wait in given), retry_policy.attempts) == (6, 7)


def test_the_server_decides_the_wait_up_to_a_minute_and_then_it_is_the_end() -> None:
    retry_policy = RetryPolicy(NoJitter())
    long = Failure("busy", "Busy.", retry_after_s=61)

    assert retry_policy.next_delay(Failure("busy", "Busy.", retry_after_s=60)) == 60
    assert retry_policy.next_delay(long) is None
    assert retry_policy.final_message(long) == "Busy. It asks for a wait of 61 s: try again later."


def test_the_last_message_has_the_number_of_tries() -> None:
    retry_policy, failure = RetryPolicy(NoJitter()), Failure("unreachable", "Cannot connect.")
    while retry_policy.next_delay(failure) is not None:
        pass

    assert retry_policy.final_message(failure) == "Cannot connect. Gave up after 3 tries."


def test_who_only_tries_an_endpoint_out_has_less_patience() -> None:
    retry_policy = RetryPolicy(NoJitter(), max_attempts=2)

    assert [retry_policy.next_delay(Failure("broken", "x.")) for _ in range(2)] == [0.5, None]
    assert retry_policy.final_message(Failure("broken", "x.")) == "x. Gave up after 2 tries."
