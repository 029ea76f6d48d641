"""JSON schemas of argument models, as they are sent to a model."""

from functools import lru_cache
from typing import Any

from pydantic import BaseModel

__all__ = ["declared_parameters", "schema_of"]


@lru_cache(maxsize=256)
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON schema, made once; not to be changed by anyone."""
    return model.model_json_schema()


@lru_cache(maxsize=256)
def declared_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """The schema without the titles that only repeat names; always an object with properties. Made once as well."""
    shown = _untitled(schema_of(model))
    shown.pop("description", None)
    shown.setdefault("properties", {})
    shown.setdefault("additionalProperties", model.model_config.get("extra") == "allow")
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
