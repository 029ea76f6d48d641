from pydantic import BaseModel, ConfigDict, Field

from tools.schema import declared_parameters


class Inner(BaseModel):
    title: str = Field(default="title", title="The title")


class Outer(BaseModel):
    """Not for the model."""

    title: list[Inner]
    odd: dict[str, int] = Field(default={"title": 1})


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


def test_titles_are_left_out_and_properties_called_title_stay() -> None:
    assert declared_parameters(Outer) == {
        "type": "object",
        "$defs": {
            "Inner": {"type": "object", "properties": {"title": {"type": "string", "default": "title"}}},
        },
        "properties": {
            "title": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
            "odd": {"type": "object", "additionalProperties": {"type": "integer"}, "default": {"title": 1}},
        },
        "required": ["title"],
        "additionalProperties": False,
    }


def test_a_schema_without_arguments_is_still_an_object_with_properties() -> None:
    assert declared_parameters(Open) == {"type": "object", "properties": {}, "additionalProperties": True}
