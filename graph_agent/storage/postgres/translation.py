"""Translates this program's SQL, which is written for SQLite, to PostgreSQL.

Functions that only SQLite has are created on the server (`functions`). The remaining differences are of syntax;
each is a rule here. A statement is translated once per process.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

__all__ = ["KEYS", "NUL", "NUMBERED", "SCHEMA", "Statement", "bind", "translate", "translate_schema"]

SCHEMA = "graph_agent"
"""The schema of all tables, apart from those of other programs in the same database."""
NUL = "\uf8f0"
"""Stands before a 0 for a NUL, which PostgreSQL's text cannot hold, and before a 1 for itself."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id"),
    "writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx"),
    "threads": ("thread_id",),
    "leases": ("thread_id",),
    "file_states": ("thread_id", "path"),
    "prune_points": ("thread_id", "checkpoint_id"),
}
"""The primary keys of the tables whose rows are replaced: PostgreSQL wants them in ON CONFLICT."""
NUMBERED = frozenset({"decisions", "inbox", "rewinds", "grants", "background_shells", "search_entries"})
"""The tables that number their rows themselves."""


class Statement(NamedTuple):
    """A statement in PostgreSQL's syntax, with the placeholders of psycopg."""

    query: bytes
    binding: Literal["places", "names", "numbers", "none"]
    """How its values are given: in order, by name, or in order and used by their number."""
    only_reads: bool
    reads_ancestors: bool = False
    """Whether it reads the ancestors of a checkpoint, its third value; they are fetched as needed."""


_NESTED = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*?"
_CASTS = re.compile(rf"\bCAST\(({_NESTED}) AS (BLOB|TEXT|INTEGER)\)")
_CAST_FUNCTIONS = {"BLOB": "as_bytes", "TEXT": "as_text", "INTEGER": "as_integer"}
_TABLES = f"SELECT tablename AS name FROM pg_catalog.pg_tables WHERE schemaname = '{SCHEMA}'"  # noqa: S608 - a name
_VALUE = r"(?:\?\d*|:[a-z_]+)"
_RECURSION = r"WITH RECURSIVE \w+ ?\((?:id|thread_id)\b[^()]*\) AS \(\s*SELECT "
_RULES: Sequence[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bsqlite_schema WHERE type = 'table' AND", f"({_TABLES}) tables WHERE"),
        # Columns have one type here: none holds bytes in the place of text.
        (r"iif\(typeof\(([\w.]+)\) = 'blob', hex\(\1\), \1\)", r"\1"),
        (r"\bx''", "''::bytea"),
        (r" INDEXED BY \w+", ""),
        # Nobody holds a thread any more whose lease was not renewed in time.
        (r"(?<!DELETE )\bFROM leases\b", "FROM leases_now"),
        (r" \|\| ''", "::text"),
        (r"\bCROSS JOIN (\w+(?: \w+)?)(\s+)ON\b", r"JOIN \1\2ON"),
        (r"\bsubstr\(", "text_part("),
        (r"\bjson_array\(", "json_build_array("),
        (r"\bjson_object\(", "json_build_object("),
        (r"\bLIKE\b", "ILIKE"),
        # A value alone has no type.
        (rf"({_VALUE}) IS (NOT )?NULL", r"\1::text IS \2NULL"),
        (rf"\bIS NOT (?={_VALUE})", "IS DISTINCT FROM "),
        (rf"\bIS (?={_VALUE})", "IS NOT DISTINCT FROM "),
        # Both parts of a recursion must sort alike, and ids sort by their bytes.
        (rf"({_RECURSION}(?:{_VALUE}|value\b))", r'\1::text COLLATE "C"'),
    )
]
_REPLACE = re.compile(r"INSERT OR REPLACE INTO (\w+)\s*\(([^()]*)\)")
_UPSERT = re.compile(r"INSERT INTO (\w+)(.*)ON CONFLICT DO UPDATE", re.DOTALL)
_INSERT = re.compile(r"\s*INSERT INTO (\w+)\b")
_LEXEME = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|::|%|\?\d*|:[A-Za-z_]\w*")


@cache
def translate(sql: str) -> Statement:
    """The statement for PostgreSQL."""
    if sql == "PRAGMA user_version":
        return Statement(b"SELECT version FROM schema_version", "none", only_reads=True)
    if "pragma_module_list" in sql:
        # The search index is a part of SQLite; without it every message is scanned.
        return Statement(b"SELECT 1 WHERE FALSE", "none", only_reads=True)
    for pattern, replacement in _RULES:
        sql = pattern.sub(replacement, sql)
    while _CASTS.search(sql):
        sql = _CASTS.sub(lambda found: f"{_CAST_FUNCTIONS[found[2]]}({found[1]})", sql)
    sql = _translate_conflicts(sql)
    inserted = _INSERT.match(sql)
    if inserted is not None and inserted[1] in NUMBERED:
        sql = f"{sql.rstrip()} RETURNING id"
    return _with_placeholders(sql)


def _translate_conflicts(sql: str) -> str:
    if "INSERT OR IGNORE INTO" in sql:
        return f"{sql.replace('INSERT OR IGNORE INTO', 'INSERT INTO').rstrip()} ON CONFLICT DO NOTHING"
    if found := _REPLACE.search(sql):
        table, columns = found[1], [name.strip() for name in found[2].split(",")]
        changed = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in KEYS[table])
        action = f"ON CONFLICT ({', '.join(KEYS[table])}) DO UPDATE SET {changed}"
        return f"{sql.replace('INSERT OR REPLACE INTO', 'INSERT INTO').rstrip()} {action}"
    if found := _UPSERT.search(sql):
        return sql.replace("ON CONFLICT DO UPDATE", f"ON CONFLICT ({', '.join(KEYS[found[1]])}) DO UPDATE")
    return sql


def _with_placeholders(sql: str) -> Statement:
    binding: Literal["places", "names", "numbers"] = "places"

    def placeholder(found: re.Match[str]) -> str:
        nonlocal binding
        lexeme = found[0]
        match lexeme[0]:
            case "?" if len(lexeme) > 1:
                binding = "numbers"
                return f"%(p{lexeme[1:]})s"
            case "?":
                return "%s"
            case ":" if lexeme != "::":
                binding = "names"
                return f"%({lexeme[1:]})s"
            case _:
                return lexeme.replace("%", "%%")

    translated = _LEXEME.sub(placeholder, sql)
    start = translated.lstrip()
    only_reads = start.startswith(("SELECT", "WITH"))
    reads_ancestors = start.startswith("WITH RECURSIVE line (id, parent,")
    return Statement(translated.encode(), binding, only_reads, reads_ancestors)


def bind(statement: Statement, values: Sequence[Any] | Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
    """The values as the statement takes them."""
    if statement.binding == "none":
        return ()
    if statement.binding == "numbers" and not isinstance(values, Mapping):
        return {f"p{number}": value for number, value in enumerate(values, 1)}
    return values


_COMMENT = re.compile(r"--[^\n]*")
_TYPES: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = [
    (re.compile(r"\bINTEGER PRIMARY KEY( AUTOINCREMENT)?"), "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\bBLOB\b"), "BYTEA"),
    (re.compile(r"\bTEXT\b"), 'TEXT COLLATE "C"'),
    (re.compile(r"\bWITHOUT ROWID\b"), ""),
]


def translate_schema(sql: str) -> list[str]:
    """The statements that create or change tables, for PostgreSQL.

    Each new table has the number by which SQLite orders its rows. Triggers are left out: they are about the search
    index, which is a part of SQLite.
    """
    statements = []
    for part in _COMMENT.sub("", sql).split(";"):
        text = part.strip()
        if not text or text.startswith(("CREATE TRIGGER", "DROP TRIGGER", "INSERT OR IGNORE", "DELETE", "END")):
            continue
        for pattern, replacement in _TYPES:
            text = pattern.sub(replacement, text)
        if text.startswith("CREATE TABLE"):
            numbering = "AS (id) STORED" if re.search(r"^\s*id BIGINT", text, re.MULTILINE) else "AS IDENTITY"
            text = f"{text.rstrip().removesuffix(')')}, rowid BIGINT GENERATED ALWAYS {numbering})"
        statements.append(text)
    return statements
