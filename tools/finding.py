"""From the name a model wrote to the name of a tool."""

import difflib
from collections.abc import Iterable, Mapping

__all__ = ["TOOL_ALIASES", "renamed_arguments", "resolve_name", "unknown_tool"]

TOOL_ALIASES: Mapping[str, str] = {"read": "read_file", "write": "write_file", "edit": "edit_file"}


def resolve_name(written: str, known: Iterable[str]) -> str | None:
    """The tool that is meant: the exact name, else ignoring letter case and white space, else an alias."""
    names = list(known)
    if written in names:
        return written
    plain = "".join(written.split()).casefold()
    by_plain = {name.casefold(): name for name in names}
    return by_plain.get(plain) or by_plain.get(TOOL_ALIASES.get(plain, ""))


def unknown_tool(written: str, known: Iterable[str]) -> str:
    """What the model is told about a name that no tool has."""
    names = sorted(known)
    near = difflib.get_close_matches(written.strip().casefold(), names, n=2, cutoff=0.6)
    parts = [
        name for name in names if name not in near and set(written.casefold().split("_")) & set(name.split("_"))
    ]
    candidates = near or parts[:2]
    hint = f" Did you mean {' or '.join(candidates)}?" if candidates else ""
    return f"There is no tool {written!r}.{hint} The tools are: {', '.join(names)}."


def renamed_arguments(
    arguments: Mapping[str, object], aliases: Mapping[str, str], properties: Iterable[str]
) -> dict[str, object]:
    """The arguments under the schema's names; an alias counts only where the schema has no such name itself."""
    known = set(properties)
    renamed: dict[str, object] = {}
    for name, value in arguments.items():
        target = aliases.get(name, name)
        is_alias = name not in known and target in known and target not in arguments
        renamed[target if is_alias else name] = value
    return renamed
