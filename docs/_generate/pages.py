"""Which generated pages there are and where they lie, with what each should hold right now."""

from collections.abc import Callable, Mapping
from pathlib import Path

from docs._generate import commands, configuration, events, manual, offline, schema, state_machine, thread_schema

__all__ = ["PAGES", "write_pages"]

PAGES: Mapping[str, Callable[[], str]] = {
    "docs/commands.md": commands.page,
    "docs/configuration.md": configuration.page,
    "docs/events.md": events.page,
    "docs/events.schema.json": schema.schema,
    "docs/graph-agent.1": manual.page,
    "docs/offline.md": offline.page,
    "docs/state-machine.md": state_machine.page,
    "docs/thread.schema.json": thread_schema.schema,
}
"""Path from the top of the checkout to what renders it."""


def write_pages(root: Path) -> list[str]:
    """Bring the pages up to date; returns the paths of those that changed."""
    changed = [path for path, render in PAGES.items() if _read(root / path) != render()]
    for path in changed:
        (root / path).write_text(PAGES[path](), encoding="utf-8")
    return changed


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
