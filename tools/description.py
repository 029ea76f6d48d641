"""Descriptions of tools in parts, rendered into the one text a model reads."""

import json
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ToolDescription", "ToolExample", "short_of"]


@dataclass(frozen=True)
class ToolExample:
    """One good call."""

    params: dict[str, Any]
    note: str = ""


@dataclass(frozen=True)
class ToolDescription:
    """A description in parts; `short` alone is used where room is scarce and in searches."""

    short: str
    long: str = ""
    usage_notes: tuple[str, ...] = ()
    examples: tuple[ToolExample, ...] = field(default=())
    important: tuple[str, ...] = ()

    def render(self) -> str:
        """The whole description as the model reads it."""
        parts = [self.short, self.long, _listed("Notes:", self.usage_notes), _listed("Important:", self.important)]
        shown = tuple(
            f"{json.dumps(item.params, ensure_ascii=False)} {item.note}".rstrip() for item in self.examples
        )
        parts.append(_listed("Examples:", shown))
        return "\n".join(part for part in parts if part)


def short_of(description: str | ToolDescription) -> str:
    """What there is room for in a list."""
    return description.short if isinstance(description, ToolDescription) else description


def _listed(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join([title, *(f"- {line}" for line in lines)]) if lines else ""
