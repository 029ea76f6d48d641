from typing import Any

from tools import create_default_tools
from tools.description import ToolDescription, ToolExample, format_declarations
from tools.registry import ToolRegistry


def test_every_part_of_a_description_is_rendered() -> None:
    description = ToolDescription(
        short="Finds.",
        long="In files.",
        usage_notes=("narrow",),
        examples=(ToolExample({"pattern": "x"}, "one"), ToolExample({})),
        important=("no globs",),
    )

    assert description.render() == (
        'Finds.\nIn files.\nNotes:\n- narrow\nImportant:\n- no globs\nExamples:\n- {"pattern": "x"} one\n- {}'
    )
    assert ToolDescription("Finds.").render() == "Finds."


def _declared(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


def test_each_tool_is_told_with_its_arguments() -> None:
    parameters = {
        "type": "object",
        "required": ["path", "steps"],
        "properties": {
            "path": {"type": "string", "description": "Where\nto look."},
            "depth": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "mode": {"enum": ["fast", "slow"], "default": "fast"},
            "steps": {"type": "array", "items": {"$ref": "#/$defs/Step"}, "description": "What to do."},
            "odd": {"type": ["string", "null"]},
            "more": True,
        },
        "$defs": {"Step": {"type": "object", "required": ["do"], "properties": {"do": {"type": "string"}}}},
    }

    told = format_declarations([_declared("walk", "Walks.", parameters), _declared("rest", "", {"type": "object"})])

    assert told == (
        "## walk\n"
        "Walks.\n"
        "Arguments:\n"
        "- path (string, required): Where to look.\n"
        "- depth (integer)\n"
        '- mode (one of "fast", "slow", default "fast")\n'
        "- steps (list of object, required): What to do.\n"
        "  - do (string, required)\n"
        "- odd (string)\n"
        "- more (any value)\n"
        "\n"
        "## rest\n"
        "Arguments: none"
    )
    # A schema that refers to itself ends.
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    chain = format_declarations([_declared("chain", "Chains.", {**node, "$defs": {"Node": node}})])
    assert chain.count("- next (object)") == 5


def test_every_tool_of_ours_is_told_whole() -> None:
    registry = ToolRegistry()
    registry.register_all(create_default_tools(workspace="."))

    # Some are offered in plan mode only.
    told = format_declarations([*registry.declarations(), *registry.declarations("plan")])

    assert [f"## {name}" in told for name in registry.names()] == [True] * registry.size
    assert all(part["function"]["description"] in told for part in registry.declarations())
    assert "any value" not in told
