"""JSON schemas of argument models, and the conversion of arguments to what a schema asks for.

A value that fits is never converted. What still does not fit gives one error that names every wrong field.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError

__all__ = [
    "InvalidArguments",
    "apply_aliases",
    "coerce",
    "context_keyword",
    "declared_parameters",
    "parse_arguments",
    "schema_of",
    "schema_problem",
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


_NAMED_PARTS = ("properties", "$defs", "definitions", "patternProperties")
"""Keys below which the names are the author's own."""


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: _child(key, value) for key, value in schema.items() if key != "title"}


def _child(key: str, value: Any) -> Any:
    # Below these keys the names are the author's own: a property may well be called "title".
    if key in _NAMED_PARTS and isinstance(value, dict):
        return {name: _untitled(part) if isinstance(part, dict) else part for name, part in value.items()}
    if key in ("default", "const", "enum", "examples"):
        return value
    if isinstance(value, dict):
        return _untitled(value)
    if isinstance(value, list):
        return [_untitled(item) if isinstance(item, dict) else item for item in value]
    return value


_GROUP_NAME = re.compile(r"\(\?<(?=\w)")
_UNICODE_CLASS = re.compile(r"\\[pP]\{[^}]*\}")
_MAX_PROBLEM = 160


def schema_problem(schema: Mapping[str, Any]) -> str:
    """Why providers would refuse every request with a function of these parameters; empty if nothing is wrong.

    The schema must be one by the JSON Schema meta-schema (any draft that servers use), and what it refers to must
    be in it: other documents are never read.
    """
    # Loaded late: only tools of servers and plug-ins bring schemas that may be wrong.
    from jsonschema import (  # noqa: PLC0415 - see above
        Draft4Validator,
        Draft7Validator,
        Draft202012Validator,
        FormatChecker,
    )
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - see above

    problems: list[str] = []
    for draft in (Draft202012Validator, Draft7Validator, Draft4Validator):
        try:
            draft.check_schema(schema, format_checker=FormatChecker(()))
            break
        except SchemaError as error:
            place = ".".join(map(str, error.absolute_path))
            problems.append(f"{place or 'parameters'}: {error.message}")
        except RecursionError:
            return "it is nested too deeply"
    else:
        return _short(problems[0])
    return _short(next(_part_problems(schema, schema, ()), ""))


def _short(problem: str) -> str:
    return problem if len(problem) <= _MAX_PROBLEM else f"{problem[:_MAX_PROBLEM]}…"


def _part_problems(part: Any, schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(part, list):
        for number, item in enumerate(part):
            yield from _part_problems(item, schema, (*path, str(number)))
    if not isinstance(part, Mapping):
        return
    place = ".".join(path) or "parameters"
    yield from (f"{place}: {problem}" for problem in _own_problems(part, schema))
    for key, value in part.items():
        if key in _NAMED_PARTS and isinstance(value, Mapping):
            for name, inner in value.items():
                yield from _part_problems(inner, schema, (*path, key, name))
        elif key not in ("default", "const", "enum", "examples", "required"):
            yield from _part_problems(value, schema, (*path, key))


def _own_problems(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(reference := part.get("$ref"), str) and not _is_within(reference, schema):
        where = "nothing in the schema" if reference.startswith("#") else "another document"
        yield f"$ref {reference} refers to {where}"
    if isinstance(pattern := part.get("pattern"), str):
        try:
            # JavaScript's notation is the standard; Python has no classes of Unicode properties.
            re.compile(_UNICODE_CLASS.sub("x", _GROUP_NAME.sub("(?P<", pattern)))
        except re.error as error:
            yield f"pattern {pattern!r} is not a regular expression ({error})"
    if (kind := part.get("type")) and isinstance(values := part.get("enum"), list):
        kinds = kind if isinstance(kind, list) else [kind]
        if wrong := [one for one in values if not any(_is_of_type(one, name) for name in kinds)]:
            yield f"enum has {wrong[0]!r}, which is not of type {' or '.join(map(str, kinds))}"


def _is_within(reference: str, schema: Mapping[str, Any]) -> bool:
    found: Any = schema
    if reference == "#":
        return True
    if not reference.startswith("#/"):
        # An anchor is found by its name anywhere in the schema.
        return reference.startswith("#") and f'"$anchor": {json.dumps(reference[1:])}' in json.dumps(schema)
    for name in unquote(reference[2:]).split("/"):
        key = name.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, Mapping) and key in found:
            found = found[key]
        else:
            return False
    return isinstance(found, Mapping | bool)


def _is_of_type(value: Any, name: object) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(str(name), (object,)))


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


CONTEXT_KEYWORDS = ("context", "tool_context")


def context_keyword(model: type[BaseModel]) -> str:
    """The keyword under which `execute` takes its context: another one if the schema has an argument `context`."""
    return CONTEXT_KEYWORDS["context" in model.model_fields]


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
        elif item is not None or key in required or _takes_null(form, definitions):
            converted[key] = coerce(item, form, definitions)
    return converted


def _takes_null(form: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Whether null is a value of its own; otherwise it stands for an argument that is not given."""
    form = _dereferenced(form, definitions)
    if choices := form.get("anyOf") or form.get("oneOf"):
        return any(_takes_null(choice, definitions) for choice in choices)
    if "const" in form or "enum" in form:
        return None in form.get("enum", [form.get("const")])
    wanted = form.get("type")
    if wanted is None:
        return "allOf" not in form
    return "null" in wanted if isinstance(wanted, list) else wanted == "null"


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
