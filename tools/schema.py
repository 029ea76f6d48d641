"""JSON schemas of argument models, and the conversion of arguments to what a schema asks for.

A value that fits is never converted. What still does not fit gives one error that names every wrong field.
"""

import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

__all__ = [
    "InvalidArguments",
    "apply_aliases",
    "coerce",
    "context_keyword",
    "declared_parameters",
    "parse_arguments",
    "schema_of",
    "to_keywords",
]

Schema = Mapping[str, Any]


@lru_cache(maxsize=256)
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON schema, cached: do not change it."""
    return model.model_json_schema()


@lru_cache(maxsize=256)
def declared_parameters(model: type[BaseModel]) -> dict[str, Any]:
    """The schema without the titles that only repeat names; always an object with properties. Cached as well."""
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


class InvalidArguments(Exception):
    """The arguments do not match the schema; the message names each field, its value and what is expected."""


def parse_arguments(model: type[BaseModel], arguments: Mapping[str, Any]) -> BaseModel:
    """Coerce and validate.

    Raises:
        InvalidArguments: they are unusable.
    """
    schema = schema_of(model)
    try:
        coerced = coerce(dict(arguments), schema, schema.get("$defs", {}))
        # Through JSON, because strictness there still takes text for paths, dates and enumerations.
        written = json.dumps(coerced)
    except RecursionError as error:
        raise _invalid_arguments(["arguments: nested too deeply"]) from error
    unknown = []
    if model.model_config.get("extra") != "allow":
        known = sorted({*schema.get("properties", {}), *model.model_fields})
        for name in coerced:
            if name in known:
                continue
            hint = "".join(f", did you mean {near}" for near in get_close_matches(name, known, n=1))
            unknown.append(f"unknown argument {name}{hint} (known: {', '.join(known) or 'none'})")
    try:
        parsed = model.model_validate_json(written, strict=True)
    except ValidationError as error:
        problems = [_problem(dict(item), schema) for item in error.errors(include_url=False)]
        raise _invalid_arguments([*problems, *unknown]) from error
    if unknown:
        raise _invalid_arguments(unknown)
    return parsed


def apply_aliases(
    arguments: Mapping[str, object], aliases: Mapping[str, str], properties: Iterable[str]
) -> dict[str, object]:
    """The arguments under the schema's names; an alias counts only if the schema has no such name itself."""
    known = set(properties)
    renamed: dict[str, object] = {}
    for name, value in arguments.items():
        target = aliases.get(name, name)
        is_alias = name not in known and target in known and target not in arguments
        renamed[target if is_alias else name] = value
    return renamed


def context_keyword(model: type[BaseModel]) -> str:
    """The keyword under which `execute` takes its context: another one if the schema has an argument `context`."""
    return "tool_context" if "context" in model.model_fields else "context"


def _invalid_arguments(problems: list[str]) -> InvalidArguments:
    return InvalidArguments(f"Invalid arguments: {'; '.join(problems)}. Correct them and try again.")


def to_keywords(parsed: BaseModel) -> dict[str, Any]:
    """The arguments for `execute`: every declared field, defaults filled in, nested models as they are."""
    return {name: getattr(parsed, name) for name in type(parsed).model_fields} | dict(parsed.model_extra or {})


def coerce(value: Any, schema: Schema, definitions: Mapping[str, Schema]) -> Any:
    """The value converted to what its schema asks for, at any depth; a value that cannot be converted stays."""
    schema = _dereferenced(schema, definitions)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _coerce_choice(value, choices, definitions)
    if parts := schema.get("allOf"):
        return coerce(value, parts[0], definitions) if len(parts) == 1 else value
    value = _coerce_type(value, schema.get("type"))
    if isinstance(value, dict):
        return _coerce_object(value, schema, definitions)
    if isinstance(value, list) and isinstance(items := schema.get("items"), Mapping):
        return [coerce(item, items, definitions) for item in value]
    return value


def _dereferenced(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    # A schema may be true or false, which asks for nothing.
    form: object = schema
    if isinstance(form, Mapping) and isinstance(reference := form.get("$ref"), str):
        form = definitions.get(reference.rsplit("/", 1)[-1])
    return form if isinstance(form, Mapping) else {}


def _coerce_choice(value: Any, choices: list[Schema], definitions: Mapping[str, Schema]) -> Any:
    forms = [_dereferenced(choice, definitions) for choice in choices]
    fitting = [coerce(value, form, definitions) for form in forms if _fits(value, form)]
    if fitting:
        # A choice that takes the value as it is comes before one that would convert it.
        return value if value in fitting else fitting[0]
    for form in forms:
        converted = coerce(value, form, definitions)
        if _fits(converted, form):
            return converted
    return value


def _coerce_object(value: dict[str, Any], schema: Schema, definitions: Mapping[str, Schema]) -> dict[str, Any]:
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    others = schema.get("additionalProperties")
    converted: dict[str, Any] = {}
    for key, item in value.items():
        form = properties.get(key)
        if form is None:
            converted[key] = coerce(item, others, definitions) if isinstance(others, Mapping) else item
        elif item is not None or key in required:
            converted[key] = coerce(item, form, definitions)
    return converted


def _coerce_type(value: Any, wanted: Any) -> Any:
    if isinstance(value, float) and wanted == "integer" and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return value
    match wanted:
        case "boolean":
            return {"true": True, "false": False}.get(value.strip().casefold(), value)
        case "integer" | "number":
            return _number(value, wanted)
        case "array" | "object":
            with suppress(ValueError, RecursionError):
                decoded = json.loads(value)
                return decoded if isinstance(decoded, _TYPES[wanted]) else value
    return value


def _number(text: str, wanted: str) -> Any:
    with suppress(ValueError):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):  # JSON has neither infinity nor NaN
        return text
    if wanted == "integer":
        return int(number) if number.is_integer() else text
    return number


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def _fits(value: Any, schema: Schema) -> bool:
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    wanted = schema.get("type")
    if not isinstance(wanted, str):
        return False
    if isinstance(value, bool):
        return wanted == "boolean"
    return isinstance(value, _TYPES.get(wanted, ()))


def _problem(error: dict[str, Any], schema: Schema) -> str:
    place = ".".join(str(part) for part in error["loc"]) or "arguments"
    if error["type"] == "missing":
        return f"{place}: missing, expected {_expected(error, schema)}"
    got = json.dumps(error["input"], ensure_ascii=False, default=str)
    shown = got if len(got) <= 80 else f"{got[:80]}…"
    # A bool is an int as well, but comes first in the table.
    kinds = (name for name, types in _TYPES.items() if isinstance(error["input"], types))
    got_what = f"{place}: got {shown} ({next(kinds, type(error['input']).__name__)})"
    if error["type"] == "value_error":
        return f"{got_what}: {str(error['msg']).removeprefix('Value error, ')}"
    return f"{got_what}, expected {_expected(error, schema)}"


def _expected(error: dict[str, Any], schema: Schema) -> str:
    form: Schema = schema
    for part in error["loc"]:
        form = _plain(form, schema.get("$defs", {}))
        inner = form.get("items", {}) if isinstance(part, int) else form.get("properties", {}).get(part, {})
        form = inner if isinstance(inner, Mapping) else {}
    form = _plain(form, schema.get("$defs", {}))
    if error["type"].endswith(("_type", "_parsing")) or error["type"] == "missing":
        return str(form.get("type") or error["msg"])
    return str(error["msg"]).removeprefix("Input should be ")


def _plain(form: Schema, definitions: Schema) -> Schema:
    """The form of a value that is given: of several choices, the first that is not null."""
    form = _dereferenced(form, definitions)
    several = (_dereferenced(one, definitions) for one in form.get("anyOf", ()))
    return next((one for one in several if one.get("type") != "null"), form)
