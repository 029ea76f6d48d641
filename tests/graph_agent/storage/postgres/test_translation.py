import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest

from graph_agent.config.paths import ServerPath
from graph_agent.storage.postgres.connection import PostgresConnection, connect
from graph_agent.storage.postgres.translation import KEYS, NUMBERED, bind, translate
from tests.architecture.checkout import ROOT

_MODULES = (
    *("checkpoint_rows", "checkpointer", "decisions", "deltas", "integrity", "journal", "projections", "pruning"),
    *("read_store", "repair", "rewinds", "row_values", "tasks", "thread_fork", "thread_import", "thread_lock"),
    *("threads",),
)
"""Whose statements run on a server. The others are about a file."""
_STARTS = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH) \S")
_ENDS_OPEN = re.compile(r".*(\b(AND|WHERE|BY|FROM|OR)|\()\s*$|\s*WITH\b.*\)\s*$", re.DOTALL)
_ONLY_FILES = ("PRAGMA", "sqlite_schema", "NOT INDEXED", "{", "MATCH")


def statements() -> list[tuple[str, str]]:
    """The statements in the code, each with its module. What is a part of others is seen there."""
    found: dict[str, str] = {}
    for name in _MODULES:
        module = import_module(f"graph_agent.storage.sqlite.{name}")
        tree = ast.parse((ROOT / f"graph_agent/storage/sqlite/{name}.py").read_text(encoding="utf-8"))
        formatted = [part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)]
        inner = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and node not in formatted]
        for text in _texts([*vars(module).values(), *inner]):
            if not _ENDS_OPEN.match(text) and not any(word in text for word in _ONLY_FILES):
                found.setdefault(text, name)
    return [
        (name, text) for text, name in found.items() if not any(text in other for other in found.keys() - {text})
    ]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and _STARTS.match(value):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)


def test_every_statement_of_storage_is_prepared_by_a_server(unwritten: ServerPath) -> None:
    session = connect(unwritten)
    refused, count = [], 0
    for number, (module, text) in enumerate(statements()):
        count += 1
        query, types = _numbered(translate(text).query.decode())
        result = session.pgconn.prepare(f"s{number}".encode(), query.encode(), types)
        state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"").decode()
        # A value alone has no type here; with the value itself comes its type.
        if state not in ("", "42P18"):
            refused.append(f"{module}: {text.strip()[:100]!r}: {result.get_error_message()}")
    session.close()

    assert refused == []
    assert count > 150


_NUMBERS = ("branch", "seq")
"""Values whose type a server cannot guess."""


def _numbered(query: str) -> tuple[str, list[int]]:
    """The statement with numbered places, and their types; 0 is left to the server."""
    names: dict[str, int] = {}

    def place_of(found: re.Match[str]) -> str:
        return "%" if found[0] == "%%" else f"${names.setdefault(found[1] or str(found.start()), len(names) + 1)}"

    numbered = re.sub(r"%(?:\((\w+)\))?s|%%", place_of, query)
    return numbered, [20 if name in _NUMBERS else 0 for name in names]


def test_a_statement_that_the_server_refuses_is_noticed(unwritten: ServerPath) -> None:
    session = connect(unwritten)
    result = session.pgconn.prepare(b"wrong", b"SELECT 1 FROM threads WHERE thread_id GLOB 'x*'")
    session.close()

    assert result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) == b"42601"


@pytest.mark.parametrize(
    ("sql", "values", "found"),
    [
        ("SELECT json_extract(?, '$.a.b[0]')", ('{"a":{"b":["x"]}}',), "x"),
        ("SELECT json_extract(?, '$.a')", ('{"a":"x\\u0000y"}',), "x\0y"),
        ("SELECT json_extract(?, '$.a')", ('{"a":"\\\\u0000"}',), "\\u0000"),
        ("SELECT json_extract(?, '$.b')", ('{"a":null}',), None),
        ("SELECT json_type(?, '$.a')", ('{"a":null}',), "null"),
        ("SELECT json_type(?, '$.a')", ('{"a":"x"}',), "text"),
        ("SELECT json_valid(?)", ("{",), 0),
        ("SELECT json_valid(?)", ("{}",), 1),
        ("SELECT count(*) FROM json_each(?)", ('["a","b"]',), 2),
        ("SELECT max(value) FROM json_each(?, '$.a')", ('{"a":["x","y"]}',), "y"),
        ("SELECT json_array_length(?, '$.a')", ('{"a":[1,2]}',), 2),
        ("SELECT json_array_length(?, '$.b')", ('{"a":[1,2]}',), 0),
        ("SELECT json_extract(json_set(?, '$.a', json('[]')), '$.a')", ('{"a":[1],"b":"\\u0000"}',), "[]"),
        ("SELECT json_extract(json_remove(?, '$.a', '$.b'), '$.c')", ('{"a":1,"c":"x"}',), "x"),
        ("SELECT json_group_array(json_array(thread_id)) FROM threads", (), "[]"),
        ("SELECT substr(?, -2)", ("abcd",), "cd"),
        ("SELECT substr(?, 2, 2)", ("abcd",), "bc"),
        ("SELECT CAST(? AS INTEGER)", ("12x",), 12),
        ("SELECT min(?, 3)", (2,), 2),
        ("SELECT max(?, 3)", (2,), 3),
        ("SELECT ?", ("a\0b\uf8f0c",), "a\0b\uf8f0c"),
        ("SELECT 1 WHERE ? IS NULL", (None,), 1),
        ("SELECT 1 WHERE 'Ab' LIKE 'aB%'", (), 1),
        ("SELECT instr(CAST(? AS BLOB), CAST('b' AS BLOB))", ("abc",), 2),
        ("SELECT '?:x%' || ?", ("y",), "?:x%y"),
        ("SELECT ?2 || ?1 || ?2", ("a", "b"), "bab"),
        ("SELECT :a || :b || :a", {"a": "x", "b": "y"}, "xyx"),
        ("SELECT ?", (True,), 1),
        ("SELECT sum(n) FROM (SELECT 1 AS n UNION ALL SELECT 2) x", (), 3),
    ],
)
def test_a_function_or_a_form_means_the_same_on_a_server(
    unwritten: ServerPath, sql: str, values: Any, found: Any
) -> None:
    connection = PostgresConnection(connect(unwritten))
    [value] = connection.execute(sql, values).fetchone()
    connection.close()

    assert value == found
    assert type(value) is type(found)


def test_the_keys_and_numbered_tables_are_those_of_the_tables(unwritten: ServerPath) -> None:
    connection = PostgresConnection(connect(unwritten))
    keys = """
    SELECT t.relname, array_to_string(array_agg(a.attname ORDER BY array_position(i.indkey, a.attnum)), ' ')
    FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
    JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = ANY (i.indkey)
    WHERE i.indisprimary AND n.nspname = 'graph_agent' GROUP BY t.relname
    """
    found = {table: tuple(columns.split()) for table, columns in connection.execute(keys).fetchall()}
    connection.close()

    assert {table: found[table] for table in KEYS} == dict(KEYS)
    # What is to be removed from the search index has the number that it has there.
    assert {table for table, key in found.items() if key == ("id",)} - {"search_removals"} == NUMBERED


def test_values_that_are_used_by_number_are_given_in_order() -> None:
    statement = translate("SELECT ?2, ?1, ?2")

    assert (statement.query, bind(statement, ("a", "b"))) == (
        b"SELECT %(p2)s, %(p1)s, %(p2)s",
        {"p1": "a", "p2": "b"},
    )


def test_the_place_is_shown_without_its_password() -> None:
    for url in (
        "postgresql://ada:s3cret@db/agents",
        "postgresql://ada@db/agents?password=s3cret&port=5&sslpassword=s3cret",
    ):
        path = ServerPath.from_url(url, Path("/srv"))
        assert path.password == "s3cret"  # noqa: S105 - of nobody
        assert "s3cret" not in f"{path} {path!r}"
