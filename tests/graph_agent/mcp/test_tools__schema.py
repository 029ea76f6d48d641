import pytest

from graph_agent.mcp.tools import arguments_model, usable_schema, validate_arguments
from tools.schema import declared_parameters, parse_arguments

_STRICT = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": None}, {"type": "string"}])
def test_every_schema_is_offered_as_an_object_with_properties(schema: dict[str, object]) -> None:
    usable = usable_schema(schema)

    assert (usable["type"], usable["properties"]) == ("object", {})


def test_a_schema_is_declared_to_the_model_with_everything_it_says() -> None:
    schema = {**_STRICT, "additionalProperties": False, "$defs": {"a": {"type": "string"}}}

    assert declared_parameters(arguments_model(schema)) == schema


def test_arguments_are_turned_into_what_the_foreign_schema_asks_for() -> None:
    parsed = parse_arguments(arguments_model(_STRICT), {"count": "3", "more": [1]})

    assert parsed.model_dump() == {"count": 3, "more": [1]}


def test_wrong_arguments_are_named_field_by_field() -> None:
    said = validate_arguments(_STRICT, {"count": "many"})

    assert said == "Invalid arguments: count: 'many' is not of type 'integer'. Correct them and try again."
    assert validate_arguments(_STRICT, {"count": 3}) is None


@pytest.mark.parametrize(
    "odd",
    [
        {"properties": {"a": {"type": "no such type"}}},
        {"properties": {"a": {"$ref": "http://example.invalid/schema"}}},
        {"properties": {"a": {"$ref": "#/nowhere"}}},
        {"properties": {"a": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "http://[no/address"}}},
    ],
)
def test_a_schema_nobody_can_read_complains_about_nothing_and_reaches_for_nothing(odd: dict[str, object]) -> None:
    assert validate_arguments(odd, {"a": 1}) is None
