from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tools.schema import InvalidArguments, parse_arguments


class Colour(StrEnum):
    RED = "red"


class Edit(BaseModel):
    old: str
    count: int = 1
    all: bool = False


class Everything(BaseModel):
    text: str = ""
    flag: bool = False
    count: int = Field(default=1, ge=1)
    ratio: float = 0.5
    edits: list[Edit] = Field(default_factory=list)
    labels: dict[str, int] = Field(default_factory=dict)
    maybe: int | None = None
    more: list[Edit] | None = None
    either: int | str = 0
    place: Path = Path()
    colour: Colour = Colour.RED


def _given(**arguments: Any) -> dict[str, Any]:
    return parse_arguments(Everything, arguments).model_dump(mode="json", exclude_unset=True)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"flag": "true"}, {"flag": True}),
        ({"flag": " False"}, {"flag": False}),
        ({"count": "2"}, {"count": 2}),
        ({"count": 2.0}, {"count": 2}),
        ({"count": "2.0"}, {"count": 2}),
        ({"ratio": "0.25"}, {"ratio": 0.25}),
        ({"ratio": 1}, {"ratio": 1.0}),
        ({"labels": '{"a": "1"}'}, {"labels": {"a": 1}}),
        ({"maybe": "3"}, {"maybe": 3}),
        ({"maybe": None}, {}),
        ({"count": None}, {}),
        ({"either": "3"}, {"either": "3"}),
        ({"text": "true"}, {"text": "true"}),
        ({"text": "[1]"}, {"text": "[1]"}),
        ({"place": "a/b", "colour": "red"}, {"place": "a/b", "colour": "red"}),
        (
            {"edits": '[{"old": "x", "count": "2", "all": "true"}]'},
            {"edits": [{"old": "x", "count": 2, "all": True}]},
        ),
        ({"edits": ['{"old": "x", "count": null}']}, {"edits": [{"old": "x"}]}),
    ],
)
def test_values_are_turned_into_what_the_schema_asks_for_at_any_depth(
    written: dict[str, Any], meant: dict[str, Any]
) -> None:
    assert _given(**written) == meant


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"count": "two"}, 'count: got "two" (string), expected integer'),
        ({"count": True}, "count: got true (boolean), expected integer"),
        ({"count": 0}, "count: got 0 (integer), expected greater than or equal to 1"),
        ({"flag": "yes"}, 'flag: got "yes" (string), expected boolean'),
        ({"text": 5}, "text: got 5 (integer), expected string"),
        ({"edits": [{"count": 1}]}, "edits.0.old: missing, expected string"),
        ({"more": [{"count": 1}]}, "more.0.old: missing, expected string"),
        ({"more": 5}, "more: got 5 (integer), expected array"),
        ({"edits": [{"old": "x", "count": "many"}]}, 'edits.0.count: got "many" (string), expected integer'),
        ({"colour": "blue"}, "colour: got \"blue\" (string), expected 'red'"),
        ({"txt": "x"}, "txt: there is no such argument, did you mean text"),
    ],
)
def test_what_cannot_be_turned_is_named_with_what_was_got_and_expected(
    written: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArguments) as raised:
        _given(**written)

    assert message in str(raised.value)


def test_one_error_names_every_wrong_field() -> None:
    with pytest.raises(InvalidArguments) as raised:
        _given(count="two", flag="maybe", nobody=1)

    assert all(f"{name}:" in str(raised.value) for name in ("count", "flag", "nobody"))


@given(st.text(), st.booleans(), st.integers(min_value=1), st.floats(allow_nan=False, allow_infinity=False))
def test_values_that_fit_already_stay_as_they_are(text: str, flag: bool, count: int, ratio: float) -> None:
    written = {"text": text, "flag": flag, "count": count, "ratio": ratio}

    assert _given(**written) == written
