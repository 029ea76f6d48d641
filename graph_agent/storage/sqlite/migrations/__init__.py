"""The database schema as an append-only list of numbered migrations, one file each.

`PRAGMA user_version` is the number of the last one applied. `checkpoints` and `writes` have the shape that
LangGraph's SQLite savers use, so that their tools can read them. Times are ISO-8601 UTC, JSON columns hold text.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final, NamedTuple

__all__ = ["SCHEMA_VERSION", "Migration", "load_migrations"]

SCHEMA_VERSION: Final = 18
"""The number of migrations; a constant, so that opening a current database loads none of them."""


class Migration(NamedTuple):
    """One step of the schema; never edited once it has been released."""

    name: str
    sql: str
    releases_space: bool = False
    """The file is first rewritten so that it can shrink from then on."""
    fill: Callable[[Any], None] | None = None
    """Derives or changes rows, in the same transaction."""


@cache
def load_migrations() -> tuple[Migration, ...]:
    """All migrations in order."""
    names = sorted(module.name for module in iter_modules(__path__))
    return tuple(import_module(f"{__name__}.{name}").MIGRATION for name in names)
