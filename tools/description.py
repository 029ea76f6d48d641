"""Descriptions of tools in parts, and the text form of tool declarations for models without function calling."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    examples: tuple[ToolExample, ...] = ()
    important: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.render()

    def render(self) -> str:
        """The whole description as the model reads it."""
        examples = [f"{json.dumps(item.params, ensure_ascii=False)} {item.note}".rstrip() for item in self.examples]
        lists = {"Notes:": self.usage_notes, "Important:": self.important, "Examples:": examples}
        listed = (
            line for title, lines in lists.items() if lines for line in (title, *(f"- {one}" for one in lines))
        )
        return "\n".join(part for part in (self.short, self.long, *listed) if part)


def short_description(description: str | ToolDescription) -> str:
    """The part of a description that is shown in lists."""
    return description.short if isinstance(description, ToolDescription) else description


def format_declarations(declarations: Sequence[Mapping[str, Any]]) -> str:
    """Function declarations as text: name, description, arguments. The same declarations give the same text."""
    shown = []
    for function in (declaration["function"] for declaration in declarations):
        parameters = function.get("parameters") or {}
        arguments = list(_fields(parameters, parameters.get("$defs", {}), 0))
        described = str(function.get("description") or "").strip()
        listed = ["Arguments:", *arguments] if arguments else ["Arguments: none"]
        shown.append("\n".join([f"## {function['name']}", *([described] if described else []), *listed]))
    return "\n\n".join(shown)


def _fields(schema: _Schema, definitions: _Schema, depth: int) -> Iterator[str]:
    required = schema.get("required", ())
    for name, given in schema.get("properties", {}).items():
        form = _form(given, definitions)
        marks = [_type(form, definitions)]
        if name in required:
            marks.append("required")
        elif (default := form.get("default")) is not None:
            marks.append(f"default {json.dumps(default, ensure_ascii=False)}")
        described = str(form.get("description") or "").strip().replace("\n", " ")
        yield "  " * depth + f"- {name} ({', '.join(marks)})" + (f": {described}" if described else "")
        if depth < _MAX_DEPTH:
            yield from _fields(_inner(form, definitions), definitions, depth + 1)


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
