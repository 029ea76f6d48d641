from datetime import UTC, datetime, timedelta

from graph_agent.ports import SystemClock


def test_the_time_is_utc_with_milliseconds_and_a_z() -> None:
    before = datetime.now(UTC)

    text = SystemClock().now()

    told = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    assert len(text) == len("2026-11-28T00:12:03.456Z")
    assert before - timedelta(milliseconds=1) <= told <= datetime.now(UTC)
