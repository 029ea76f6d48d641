"""Argument schemas of foreign tools: made fit to be sent to a provider, and to hold arguments against."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import BaseModel, ConfigDict
from referencing import Registry
from referencing.exceptions import Unresolvable

__all__ = ["arguments_model", "complaint", "usable_schema"]

_BROKEN_IN_OTHER_WAYS = (RecursionError, ArithmeticError, TypeError, ValueError, re.error)
"""How the library fails at references that run in a circle, at addresses and patterns that are none, infinity."""
_SHOWN_PROBLEMS = 5
_SHOWN_CHARS = 200


class _ForeignArguments(BaseModel):
    model_config = ConfigDict(extra="allow")

    foreign: ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG003 - the schema stands already
        return cls.foreign


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object with properties, which providers insist on; servers also send `{}` and less."""
    properties = schema.get("properties")
    return {
        **schema,
        "type": "object",
        "properties": dict(properties) if isinstance(properties, Mapping) else {},
    }


def arguments_model(schema: Mapping[str, Any]) -> type[BaseModel]:
    """A model that takes any arguments and declares this schema, so that they are coerced to what it asks for."""
    return type("ForeignArguments", (_ForeignArguments,), {"foreign": usable_schema(schema), "__doc__": None})


def complaint(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, field by field; None when nothing is, or when the schema itself is broken.

    References to other documents are not followed: reading them would reach for the network.
    """
    validator = Draft202012Validator(usable_schema(schema), registry=Registry())
    try:
        validator.check_schema(usable_schema(schema))
        problems = [
            f"{'.'.join(map(str, error.absolute_path)) or 'arguments'}: {error.message[:_SHOWN_CHARS]}"
            for error in validator.iter_errors(dict(arguments))
        ]
    except (SchemaError, Unresolvable, *_BROKEN_IN_OTHER_WAYS):
        return None
    if not problems:
        return None
    more = len(problems) - _SHOWN_PROBLEMS
    shown = "; ".join(problems[:_SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
    return f"The arguments do not fit: {shown}. Correct them and try again."
