from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_origin

import pytest
import typer

from graph_agent.cli.completion import FREE, SOURCES, values
from graph_agent.cli.main import app
from tests.fakes.database_rows import Rows, record_of
from tests.fakes.light_commands import asking


def _parameters(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _parameters(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield from ((path, parameter) for parameter in command.params)


def _takes_a_text(parameter: Any) -> bool:
    kind = parameter.type_descriptor.annotation
    return not getattr(parameter, "is_flag", False) and (get_origin(kind) or kind) in (str, list, Path)


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rows]:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    monkeypatch.delenv("GRAPH_AGENT_DB", raising=False)
    (tmp_path / "data").mkdir()
    rows = Rows(tmp_path / "data" / "graph-agent.db")
    yield rows
    rows.close()


def _offered(*path: str, name: str, typed: str = "", **given: str) -> list[tuple[str, str]]:
    return [(one.value, one.about) for one in values(path, name, typed, given)]


def test_every_parameter_says_whence_its_values_come_or_that_it_takes_any_text() -> None:
    texts = [(path, one.name) for path, one in _parameters(typer.main.get_command(app)) if _takes_a_text(one)]
    named = {name: f"{path[0]} {name}" in SOURCES or name in SOURCES for path, name in texts}

    assert {name for name, is_known in named.items() if not is_known} == FREE & named.keys() == FREE


def test_threads_calls_and_grants_are_offered_with_what_they_are(rows: Rows) -> None:
    asking(rows, "t1")
    later = "2026-11-28T11:00:00.000Z"
    rows.thread("t2", title="Broken", next_nodes=("human_approval",), checkpoint_id="c1", updated_at=later)
    rows.call(record_of("interrupted", "call_b"), "t2")

    assert _offered("resume", name="identifier") == [
        ("t2", "Broken (interrupted)"),
        ("t1", "Build it (awaiting_approval)"),
    ]
    assert _offered("approvals", "approve", name="call") == [("call_a", "make")]
    assert [value for value, _ in _offered("run", name="approve")] == ["call_a", "all"]
    assert [value for value, _ in _offered("recover", name="retry")] == ["call_b"]
    assert _offered("policy", "revoke", name="grant") == []


def test_a_call_id_of_several_threads_is_offered_as_thread_and_call(rows: Rows) -> None:
    asking(rows, "t1")
    asking(rows, "t2")

    offered = _offered("approvals", "reject", name="call")

    assert sorted(value for value, _ in offered) == ["t1:call_a", "t2:call_a"]


def test_a_database_named_on_the_line_is_the_one_looked_into(rows: Rows, tmp_path: Path) -> None:
    other = Rows(tmp_path / "other.db")
    other.thread("elsewhere")
    other.close()

    offered = _offered("threads", "show", name="thread", db=str(tmp_path / "other.db"))

    assert [value for value, _ in offered] == ["elsewhere"]


def test_settings_models_servers_and_fixed_words_are_offered(rows: Rows, tmp_path: Path) -> None:
    rows.thread("t1", model="llama @ 127.0.0.1:1")
    (tmp_path / "config.toml").write_text(
        '[model]\nname = "big"\n[models.fast]\nname = "small"\n[mcp_servers.demo]\ncommand = "true"\n',
        encoding="utf-8",
    )

    assert _offered("model", "use", name="name") == [("fast", "profile"), ("big", ""), ("llama", "")]
    assert _offered("mcp", "test", name="name") == [("demo", "")]
    assert ("plan", "") in _offered("chat", name="mode")
    assert ("model.base_url", "") in _offered("config", "set", name="key")
    assert ("grep", "") in _offered("tools", "show", name="name")
    assert ("executing", "") in _offered("calls", name="status")


@pytest.mark.parametrize("content", [None, b"no database", b"SQLite format 3\0"])
def test_what_cannot_be_read_offers_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("nonsense =", encoding="utf-8")
    if content is not None:
        (tmp_path / "a.db").write_bytes(content)

    found = [_offered(*path, name=name, db=str(tmp_path / "a.db")) for path, name in _ASKED]

    assert found == [[]] * len(_ASKED)


_ASKED = [
    (("resume",), "identifier"),
    (("fork",), "checkpoint"),
    (("approvals", "approve"), "call"),
    (("recover",), "retry"),
    (("chat",), "model"),
    (("mcp", "test"), "name"),
]
