from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field

from tools import create_default_tools
from tools.schema import InvalidArguments, coerce, declared_parameters, parse_arguments, schema_problem


class Nested(BaseModel):
    title: str = Field(default="title", title="The title")


class Outer(BaseModel):
    """Not for the model."""

    title: list[Nested]
    odd: dict[str, int] = Field(default={"title": 1})


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


def test_titles_are_left_out_and_properties_called_title_stay() -> None:
    assert declared_parameters(Outer) == {
        "type": "object",
        "$defs": {
            "Nested": {"type": "object", "properties": {"title": {"type": "string", "default": "title"}}},
        },
        "properties": {
            "title": {"type": "array", "items": {"$ref": "#/$defs/Nested"}},
            "odd": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {"title": 1}},
        },
        "required": ["title"],
        "additionalProperties": False,
    }


def test_a_schema_without_arguments_is_still_an_object_with_properties() -> None:
    assert declared_parameters(Open) == {"type": "object", "properties": {}, "additionalProperties": True}


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
        ({"maybe": None}, {"maybe": None}),
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
    ("form", "is_kept"),
    [
        ({}, True),
        ({"type": "null"}, True),
        ({"type": ["string", "null"]}, True),
        ({"type": ["string", "null"], "default": "x"}, True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, True),
        ({"oneOf": [{"type": "integer"}, {"$ref": "#/$defs/none"}]}, True),
        ({"enum": ["x", None]}, True),
        ({"$ref": "#/$defs/none"}, True),
        ({"type": "string"}, False),
        ({"type": ["string", "integer"]}, False),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, False),
        ({"enum": ["x"]}, False),
        ({"$ref": "#/$defs/text"}, False),
    ],
)
def test_null_is_passed_on_where_it_is_a_value_and_left_out_where_it_means_that_nothing_is_given(
    form: dict[str, Any], *, is_kept: bool
) -> None:
    definitions = {"none": {"type": "null"}, "text": {"type": "string"}}
    optional = {"type": "object", "properties": {"a": form}}

    assert coerce({"a": None}, optional, definitions) == ({"a": None} if is_kept else {})
    assert coerce({"a": None}, {**optional, "required": ["a"]}, definitions) == {"a": None}


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
        ({"txt": "x"}, "unknown argument txt, did you mean text"),
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

    assert all(name in str(raised.value) for name in ("count", "flag", "nobody"))


@given(st.text(), st.booleans(), st.integers(min_value=1), st.floats(allow_nan=False, allow_infinity=False))
def test_values_that_fit_already_stay_as_they_are(text: str, flag: bool, count: int, ratio: float) -> None:
    written = {"text": text, "flag": flag, "count": count, "ratio": ratio}

    assert _given(**written) == written


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


@pytest.mark.slow
def test_what_is_nested_beyond_measure_is_refused_in_words() -> None:
    deep: Any = 1
    for _ in range(200_000):
        deep = [deep]

    with pytest.raises(InvalidArguments, match="nested too deeply"):
        parse_arguments(Wide, {"c": deep})
    while isinstance(deep, list):
        deep = deep.pop()


def _with(part: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, **more}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        (_with({"type": "string"}, required="a"), "required: 'a' is not of type 'array'"),
        (
            {"type": "object", "properties": {"a": {}, "required": ["a"]}},
            "properties.required: ['a'] is not of type",
        ),
        (_with({"type": "text"}), "properties.a.type: 'text' is not valid under any of the given schemas"),
        (_with({"type": ["string", "nil"]}), "properties.a.type: ['string', 'nil'] is not valid"),
        (
            _with({"$ref": "#/definitions/Nope"}),
            "properties.a: $ref #/definitions/Nope refers to nothing in the schema",
        ),
        (_with({"$ref": "http://x/s.json"}), "properties.a: $ref http://x/s.json refers to another document"),
        (_with({"items": {"$ref": "#nope"}}), "properties.a.items: $ref #nope refers to nothing in the schema"),
        (_with({"type": "string", "pattern": "["}), "properties.a: pattern '[' is not a regular expression"),
        (_with({"type": "null", "enum": ["x"]}), "properties.a: enum has 'x', which is not of type null"),
        (_with({"anyOf": [{"type": "null", "enum": ["x"]}]}), "properties.a.anyOf.0: enum has 'x', which is not"),
        (
            _with({"type": "string", "enum": ["x", None]}),
            "properties.a: enum has None, which is not of type string",
        ),
        (_with({"type": "integer", "minimum": "1"}), "properties.a.minimum: '1' is not of type 'number'"),
        (_with({"anyOf": []}), "properties.a.anyOf: [] should be non-empty"),
        (_with(7), "properties.a: 7 is not of type 'object', 'boolean'"),
        ({"type": "object", "properties": ["a"]}, "properties: ['a'] is not of type 'object'"),
        (_with({}, **{"$defs": {"b": {"$ref": "#/$defs/c"}}}), "$defs.b: $ref #/$defs/c refers to nothing"),
    ],
)
def test_a_schema_that_providers_refuse_is_told_in_one_line(schema: dict[str, Any], problem: str) -> None:
    assert schema_problem(schema).startswith(problem)


@pytest.mark.parametrize(
    "schema",
    [
        {},
        _with({"type": ["string", "null"], "enum": ["x", None]}),
        _with({"$ref": "#/$defs/b"}, **{"$defs": {"b": {"$ref": "#/properties/a"}}}),
        _with({"$ref": "#"}),
        _with({"$ref": "#b"}, **{"$defs": {"b": {"$anchor": "b"}}}),
        _with({"type": "string", "pattern": r"^\p{L}+(?<rest>.*)$"}),
        _with({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}),
        _with({"type": "number", "minimum": 0, "exclusiveMinimum": True}),
        _with({"type": "integer", "enum": [1, 2.0]}),
        _with({"default": {"$ref": "#/nothing"}, "title": "$ref"}),
        {"type": "object", "properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}},
        _with({"$ref": "#/definitions/b"}, definitions={"b": {}}, **{"$schema": "http://json-schema.org/draft-07/schema#"}),
    ],
)  # fmt: skip
def test_a_schema_of_any_draft_that_servers_use_is_accepted(schema: dict[str, Any]) -> None:
    assert schema_problem(schema) == ""


def test_the_schemas_of_all_built_in_tools_are_accepted(tmp_path: Path) -> None:
    tools = create_default_tools(workspace=tmp_path)
    problems = {tool.name: schema_problem(declared_parameters(tool.args_schema)) for tool in tools}
    assert {name: problem for name, problem in problems.items() if problem} == {}
