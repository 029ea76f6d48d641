"""From the name a model wrote to the name of a tool."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping

__all__ = ["TOOL_ALIASES", "renamed_arguments", "resolve_name", "unknown_tool"]

TOOL_ALIASES: Mapping[str, str] = {"read": "read_file", "write": "write_file", "edit": "edit_file"}

_BY_VERB: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("search", "rg", "ripgrep", "codebase"), ("grep", "glob")),
    **dict.fromkeys(("find", "locate"), ("glob", "grep")),
    **dict.fromkeys(("list", "dir", "tree"), ("ls", "glob")),
    **dict.fromkeys(("run", "execute", "exec", "shell", "command", "terminal", "python"), ("bash",)),
    **dict.fromkeys(("cat", "view", "open", "show"), ("read_file",)),
    **dict.fromkeys(("create", "save"), ("write_file",)),
    **dict.fromkeys(("replace", "patch", "insert", "modify", "str"), ("edit_file",)),
    **dict.fromkeys(("fetch", "browse", "url", "http", "curl"), ("web_fetch",)),
}
"""Which tools a word of other agents' tool names stands for: it says more than a noun that many names share."""


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
    candidates = _meant(re.findall(r"[A-Z]?[a-z]+|[A-Z]+", written), names) or _alike(written, names)
    hint = f" Did you mean {' or '.join(candidates)}?" if candidates else ""
    return f"There is no tool {written!r}.{hint} The tools are: {', '.join(names)}."


def _meant(words: Iterable[str], names: Collection[str]) -> list[str]:
    """The tools that the first word with a meaning of its own stands for."""
    for word in words:
        if found := [name for name in _BY_VERB.get(word.casefold(), ()) if name in names]:
            return found
    return []


def _alike(written: str, names: Collection[str]) -> list[str]:
    near = difflib.get_close_matches(written.strip().casefold(), names, n=2, cutoff=0.6)
    return near or [name for name in names if set(written.casefold().split("_")) & set(name.split("_"))][:2]


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
