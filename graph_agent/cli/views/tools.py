"""`tools list` and `tools show`: the tools there are, as a table, one as the model reads it, and as JSON."""

import asyncio
import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from graph_agent.app.project_trust import settings_at
from graph_agent.app.tool_catalog import KnownTool, KnownTools, known_tools
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.table import format_fields, format_table, print_json, print_lines
from graph_agent.errors import UsageError

__all__ = ["list_tools", "show_tool"]

_LISTED = (
    "name",
    "risk",
    "kind",
    "origin",
    "original_name",
    "rule_name",
    "offered",
    "display_name",
    "category",
    "version",
    "tags",
    "timeout_s",
    "max_result_chars",
    "strict",
    "defer",
    "in_plan_mode",
    "wants_answer",
    "argument_aliases",
)
_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)\.(?: |\Z)")


def list_tools(mode: str | None, *, as_json: bool) -> None:
    """Print every registered tool.

    Raises:
        ConfigError: a setting is wrong.
    """
    tools, problems = _known(mode)
    if as_json:
        print_json({"tools": [_listed(tool) for tool in tools], "problems": list(problems)})
        return
    print_lines(
        format_table(("TOOL", "RISK", "KIND", "ORIGIN", "OFFERED", "ABOUT"), [_row(tool) for tool in tools])
    )
    print_lines([escape(f"! left out: {problem}") for problem in problems])


def show_tool(name: str, mode: str | None, *, as_json: bool) -> None:
    """Print one tool with what the model is told of it; for a server's tool the servers are started and ended.

    Raises:
        UsageError: there is no such tool.
        ConfigError: a setting is wrong.
    """
    tool = _named(name, _known(mode, about=name))
    if as_json:
        print_json({**_listed(tool), "description": tool.description, "parameters": tool.parameters})
    else:
        print_lines(_lines(tool))


def _known(mode: str | None, *, about: str = "") -> KnownTools:
    settings = settings_at(Path.cwd(), {"mode": mode})
    return asyncio.run(known_tools(Path.cwd(), settings, settings.mode, about=about))


def _named(name: str, known: KnownTools) -> KnownTool:
    for tool in known.tools:
        if name and name in (tool.name, tool.rule_name):
            return tool
    names = [tool.name for tool in known.tools]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}."
    left_out = f" Left out: {'; '.join(known.problems)}." if known.problems else ""
    raise UsageError(f"there is no tool {name!r}; {hint}{left_out}")


def _listed(tool: KnownTool) -> dict[str, object]:
    facts = asdict(tool)
    return {name: facts[name] for name in _LISTED}


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _row(tool: KnownTool) -> tuple[str, ...]:
    return tool.name, tool.risk, tool.kind, tool.origin, _yes(tool.offered), _first_sentence(tool.description)


def _first_sentence(text: str) -> str:
    """Without its full stop; that of an abbreviation ("e.g. a preference") ends none."""
    return _SENTENCE_END.split(text.partition("\n")[0], maxsplit=1)[0]


def _lines(tool: KnownTool) -> Iterator[str]:
    yield from format_fields(
        {
            "tool": tool.name,
            "risk": tool.risk,
            "kind": tool.kind,
            "origin": tool.origin,
            "original name": tool.original_name,
            "name in rules": tool.rule_name,
            "offered": _yes(tool.offered),
            "in plan mode": _yes(tool.in_plan_mode),
            "deferred": _yes(tool.defer),
            "asks the user": _yes(tool.wants_answer),
            "display name": tool.display_name,
            "category": tool.category,
            "version": tool.version,
            "tags": ", ".join(tool.tags),
            "time limit": f"{tool.timeout_s:g} s",
            "result limit": f"{tool.max_result_chars} characters",
            "strict": _yes(tool.strict),
            "also takes": ", ".join(f"{alias} for {name}" for alias, name in tool.argument_aliases.items()),
        }
    )
    yield ""
    yield escape(tool.description, multiline=True)
    yield ""
    yield escape(json.dumps(tool.parameters, indent=2, ensure_ascii=False), multiline=True)
