"""Descriptions of tools in parts, and the text form of tool declarations for models without function calling."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ToolDescription", "ToolExample", "format_declarations", "short_description"]

_MAX_DEPTH = 4
"""How many levels of a schema are listed; below, only the type is named."""

_Schema = Mapping[str, Any]


@dataclass(frozen=True)
class ToolExample:
    """An example call."""

    params: dict[str, Any]
    note: str = ""


@dataclass(frozen=True)
class ToolDescription:
    """A description in parts; lists and searches use `short` alone."""

    short: str
    long: str = ""
    usage_notes: tuple[str, ...] = ()
    examples: tuple[ToolExample, ...] = field(default=())
    important: tuple[str, ...] = ()

    def render(self) -> str:
        """The whole description as the model reads it."""
        parts = [
            self.short,
            self.long,
            _bullet_list("Notes:", self.usage_notes),
            _bullet_list("Important:", self.important),
        ]
        shown = tuple(
            f"{json.dumps(item.params, ensure_ascii=False)} {item.note}".rstrip() for item in self.examples
        )
        parts.append(_bullet_list("Examples:", shown))
        return "\n".join(part for part in parts if part)


def short_description(description: str | ToolDescription) -> str:
    """The part of a description that is shown in lists."""
    return description.short if isinstance(description, ToolDescription) else description


def _bullet_list(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join([title, *(f"- {line}" for line in lines)]) if lines else ""


def format_declarations(declarations: Sequence[Mapping[str, Any]]) -> str:
    """Function declarations as text: name, description, arguments. The same declarations give the same text."""
    return "\n\n".join(_format_function(declaration["function"]) for declaration in declarations)


def _format_function(function: Mapping[str, Any]) -> str:
    parameters = function.get("parameters") or {}
    arguments = list(_fields(parameters, parameters.get("$defs", {}), 0))
    listed = ["Arguments:", *arguments] if arguments else ["Arguments: none"]
    described = str(function.get("description") or "").strip()
    return "\n".join([f"## {function['name']}", *([described] if described else []), *listed])


def _fields(schema: _Schema, definitions: _Schema, depth: int) -> Iterator[str]:
    required = schema.get("required", ())
    for name, given in schema.get("properties", {}).items():
        form = _form(given, definitions)
        marks = [_type(form, definitions), *_presence(form, is_required=name in required)]
        described = str(form.get("description") or "").strip().replace("\n", " ")
        yield "  " * depth + f"- {name} ({', '.join(marks)})" + (f": {described}" if described else "")
        if depth < _MAX_DEPTH:
            yield from _fields(_inner(form, definitions), definitions, depth + 1)


def _presence(form: _Schema, *, is_required: bool) -> list[str]:
    if is_required:
        return ["required"]
    default = form.get("default")
    return [] if default is None else [f"default {json.dumps(default, ensure_ascii=False)}"]


def _type(form: _Schema, definitions: _Schema) -> str:
    if "const" in form or "enum" in form:
        values = form.get("enum", [form.get("const")])
        return "one of " + ", ".join(json.dumps(value, ensure_ascii=False) for value in values)
    if choices := _choices(form, definitions):
        return " or ".join(dict.fromkeys(_type(choice, definitions) for choice in choices))
    match form.get("type"):
        case "array":
            inner = form.get("items")
            return f"list of {_type(_form(inner, definitions), definitions)}" if inner else "list"
        case str(name):
            return name
        case list(names):
            return " or ".join(str(name) for name in names if name != "null")
        case _:
            return "any value"


def _inner(form: _Schema, definitions: _Schema) -> _Schema:
    """The object whose fields are listed: the argument itself, or the items of its list."""
    for choice in _choices(form, definitions) or [form]:
        found = _form(choice["items"], definitions) if choice.get("items") else choice
        if found.get("properties"):
            return found
    return {}


def _choices(form: _Schema, definitions: _Schema) -> list[_Schema]:
    """The alternatives of a form, without null, which means the same as leaving the argument out."""
    forms = [_form(choice, definitions) for choice in form.get("anyOf") or form.get("oneOf") or ()]
    return [choice for choice in forms if choice.get("type") != "null"]


def _form(given: object, definitions: _Schema) -> _Schema:
    if not isinstance(given, Mapping):
        return {}
    reference = given.get("$ref")
    if not isinstance(reference, str):
        return given
    named = definitions.get(reference.rsplit("/", 1)[-1])
    return {**named, **given} if isinstance(named, Mapping) else given
