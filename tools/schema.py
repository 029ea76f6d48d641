"""JSON schemas of argument models, as they are sent to a model."""

from typing import Any

from pydantic import BaseModel

__all__ = ["declared_parameters"]


def declared_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON schema without the titles that only repeat names; always an object with properties."""
    schema = model.model_json_schema()
    schema.pop("description", None)
    shown = _untitled(schema)
    shown.setdefault("properties", {})
    shown["additionalProperties"] = model.model_config.get("extra") == "allow"
    return shown


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: _child(key, value) for key, value in schema.items() if key != "title"}


def _child(key: str, value: Any) -> Any:
    # Below these keys the names are the author's own: a property may well be called "title".
    if key in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
        return {name: _untitled(part) if isinstance(part, dict) else part for name, part in value.items()}
    if key in ("default", "const", "enum", "examples"):
        return value
    if isinstance(value, dict):
        return _untitled(value)
    if isinstance(value, list):
        return [_untitled(item) if isinstance(item, dict) else item for item in value]
    return value
