import json
import sys
from pathlib import Path

import pytest

from graph_agent.cli.views.graph import GraphOutput, show_graph, whole_graph
from graph_agent.errors import UsageError
from graph_agent.graph.edges import EDGES, NODES
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text


def drawn(database: Path | None, identifier: str = "", **order: bool) -> None:
    drawing = GraphOutput.of(None, None, is_ascii=order.get("is_ascii", False), as_json=order.get("as_json", False))
    show_graph(database, identifier, None, drawing)


def test_every_node_and_edge_of_the_table_is_drawn_and_nothing_else() -> None:
    chart = whole_graph()

    assert {node.name for node in chart.nodes if not node.is_end} == set(NODES)
    assert {(edge.source, outcome, edge.target) for edge in chart.edges for outcome in edge.outcomes} == {
        (edge.source, edge.outcome, edge.target) for edge in EDGES
    }


def test_it_fits_a_terminal_of_eighty_columns_even_with_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    replies = [reply for number in range(11) for reply in (calls((f"r{number}", "read_a")), text("ok"))]
    play(tmp_path / "a.db", *["go"] * 11, replies=tuple(replies))

    drawn(tmp_path / "a.db")

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [
        words in "\n".join(lines) for words in ("reasoning ×22", "marked ×11", "● END", "status      idle")
    ] == [True] * 4


def test_the_place_of_the_thread_and_its_way_there_are_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.db"
    (head,) = play(path, "go", replies=(calls(("w", "write_a")),))

    drawn(path, head, as_json=True)

    told = json.loads(capsys.readouterr().out)
    assert {key: told[key] for key in ("checkpoint_id", "status", "next", "since")} == {
        "checkpoint_id": head,
        "status": "awaiting_approval",
        "next": ["human_approval"],
        "since": None,
    }
    assert [node["name"] for node in told["nodes"] if node["is_live"]] == ["human_approval"]
    assert {edge["source"]: edge["visits"] for edge in told["edges"] if edge["visits"]} == {
        "START": 1,
        "reasoning": 1,
        "tool_routing": 1,
    }


@pytest.mark.parametrize("form", ["terminal", "mermaid", "svg", "png"])
def test_a_file_gets_the_form_asked_for(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "drawing"
    beginnings = {"terminal": "  ", "mermaid": "flowchart TD", "svg": "<svg ", "png": "\x89PNG"}

    show_graph(None, "", None, GraphOutput.of(form, path, is_ascii=False, as_json=False))

    assert path.read_bytes().decode("latin-1").startswith(beginnings[form])
    assert capsys.readouterr().out == f"wrote {path}\n"


@pytest.mark.parametrize(
    ("name", "form"), [("a.svg", "svg"), ("a.PNG", "png"), ("a.mmd", "mermaid"), ("a.txt", "terminal")]
)
def test_the_end_of_the_file_name_says_the_form(name: str, form: str) -> None:
    assert GraphOutput.of(None, Path(name), is_ascii=False, as_json=False).form == form


def test_a_dumb_terminal_gets_ascii(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")

    drawn(None)

    assert capsys.readouterr().out.isascii()


@pytest.mark.parametrize(
    ("form", "output", "as_json", "words"),
    [
        ("gif", None, False, "'gif' is unknown; choose one of terminal, mermaid, svg, png"),
        ("svg", None, True, "--json prints the graph as data"),
        (None, Path("a"), True, "--json prints the graph as data"),
    ],
)
def test_what_makes_no_sense_is_refused(form: str | None, output: Path | None, as_json: bool, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        GraphOutput.of(form, output, is_ascii=False, as_json=as_json)


def test_a_picture_is_not_poured_into_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    with pytest.raises(UsageError, match="--output FILE"):
        GraphOutput.of("png", None, is_ascii=False, as_json=False)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        show_graph(None, "", None, GraphOutput.of("svg", tmp_path, is_ascii=False, as_json=False))
