from datetime import UTC, datetime, timedelta

import pytest

from graph_agent.cli.views.format import age_seconds, format_age, format_time_and_age, parse_duration
from graph_agent.cli.views.table import format_time
from graph_agent.errors import UsageError


def _ago(**span: float) -> str:
    return (datetime.now(UTC) - timedelta(**span)).isoformat()


def test_an_age_is_told_in_its_largest_unit() -> None:
    ages = [format_age(_ago(**{unit: 3.5})) for unit in ("days", "hours", "minutes", "seconds")]

    assert ages == ["3 d ago", "3 h ago", "3 min ago", "3 s ago"]
    assert [format_age(_ago(seconds=-60)), format_age(None), format_age("then")] == ["just now", "", "then"]


def test_a_time_is_told_with_its_age() -> None:
    asked = _ago(minutes=5)

    assert format_time_and_age(asked) == f"{format_time(asked)}, 5 min ago"
    assert (format_time_and_age(""), age_seconds("then")) == ("", None)


def test_a_span_is_a_number_and_a_unit() -> None:
    spans = [parse_duration(written, "--older-than") for written in ("90s", "10m", "1.5h", "2d")]

    assert spans == [90, 600, 5400, 172_800]
    with pytest.raises(UsageError, match="--older-than 'soon' is no span of time"):
        parse_duration("soon", "--older-than")
