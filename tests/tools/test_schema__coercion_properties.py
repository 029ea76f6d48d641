from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tools import create_default_tools
from tools.schema import InvalidArguments, coerce, parse_arguments

_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-5, 5) | st.integers(),
        st.floats(allow_nan=False),
        st.sampled_from(
            ["", "a", "1", "-2.5", "true", " FALSE ", "null", "[1]", '{"a": "1"}', "9" * 5000, "\ud800"]
        ),
        st.text(max_size=5),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
_TYPES = st.sampled_from(["string", "boolean", "integer", "number", "array", "object", "null"])
_SCHEMAS = st.recursive(
    st.one_of(
        st.booleans(),
        st.just({}),
        st.just({"$ref": "#/$defs/Named"}),
        st.builds(lambda kind: {"type": kind}, _TYPES),
        st.builds(lambda kinds: {"type": kinds}, st.lists(_TYPES, min_size=1, max_size=2, unique=True)),
        st.builds(lambda values: {"enum": values}, st.lists(_VALUES, min_size=1, max_size=2)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda properties, others: {"type": "object", "properties": properties, "additionalProperties": others},
            st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            inner,
        ),
        st.builds(
            lambda key, forms: {key: forms}, st.sampled_from(["anyOf", "allOf"]), st.lists(inner, min_size=1)
        ),
    ),
    max_leaves=6,
)
_NAMED = {"Named": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/Named"}}}}


class Inner(BaseModel):
    a: int = 0
    b: "Inner | None" = None


class Wide(BaseModel):
    a: int | list[Inner] | dict[str, bool] = 1
    b: Literal["x", 1] | float | None = None
    c: list[list[int]] | Inner = []


@given(_VALUES, _SCHEMAS)
@settings(max_examples=150, deadline=None)
def test_no_value_and_no_schema_make_it_raise(value: Any, schema: Any) -> None:
    coerce(value, schema, _NAMED)


def _holds_null(value: Any) -> bool:
    match value:
        case dict():
            return any(map(_holds_null, value.values()))
        case list():
            return any(map(_holds_null, value))
        case _:
            return value is None


@given(_VALUES.filter(lambda value: not _holds_null(value)), _SCHEMAS)
@settings(max_examples=150, deadline=None)
def test_a_value_that_holds_the_schema_stays_as_it_is(value: Any, schema: Any) -> None:
    whole = {**schema, "$defs": _NAMED} if isinstance(schema, dict) else schema

    if Draft202012Validator(whole).is_valid(value):
        assert coerce(value, schema, _NAMED) == value


@pytest.mark.parametrize("model", [Wide, *(tool.args_schema for tool in create_default_tools(workspace="."))])
def test_any_arguments_are_taken_or_refused_in_words(model: type[BaseModel]) -> None:
    names = [*model.model_fields, "nobody"]

    @given(st.dictionaries(st.sampled_from(names), _VALUES, max_size=4))
    @settings(max_examples=25, deadline=None)
    def hold(arguments: dict[str, Any]) -> None:
        with suppress(InvalidArguments):
            parsed = parse_arguments(model, arguments)
            again = parse_arguments(model, parsed.model_dump(mode="json", exclude_unset=True))
            assert again == parsed

    hold()


def test_what_is_nested_beyond_measure_is_refused_in_words() -> None:
    deep: Any = 1
    for _ in range(200_000):
        deep = [deep]

    with pytest.raises(InvalidArguments, match="nested too deeply"):
        parse_arguments(Wide, {"c": deep})
    while isinstance(deep, list):
        deep = deep.pop()
