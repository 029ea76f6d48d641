import json
from pathlib import Path

import pytest

from graph_agent.app.reader import build_graph, format_mermaid
from graph_agent.cli.views.inspection import show_graph
from graph_agent.errors import UsageError
from graph_agent.graph.edges import EDGES, NODES
from graph_agent.inspect import Visits
from tests.fakes.light_commands import run
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text


def test_every_node_and_edge_of_the_table_is_in_the_graph_and_nothing_else() -> None:
    graph = build_graph()

    assert {node.name for node in graph.nodes if not node.is_end} == set(NODES)
    assert {(edge.source, outcome, edge.target) for edge in graph.edges for outcome in edge.outcomes} == {
        (edge.source, edge.outcome, edge.target) for edge in EDGES
    }


def test_the_list_fits_eighty_columns_and_counts_visits(tmp_path: Path) -> None:
    replies = [reply for number in range(11) for reply in (calls((f"r{number}", "read_a")), text("ok"))]
    play(tmp_path / "a.db", *["go"] * 11, replies=tuple(replies))

    lines = run("graph", "--db", str(tmp_path / "a.db"), COLUMNS="80").stdout.splitlines()

    assert max(map(len, lines)) <= 80
    assert {"  reasoning  ×22", "> END"} <= set(lines)
    assert any(line.split()[:3] == ["tool_routing", "tool_execution", "×11"] for line in lines)


def test_the_position_and_visits_of_a_thread_are_shown_as_json_and_mermaid(tmp_path: Path) -> None:
    (head,) = play(tmp_path / "a.db", "go", replies=(calls(("w", "write_a")),))
    command = ("graph", head, "--db", str(tmp_path / "a.db"))

    shown = json.loads(run(*command, "--json").stdout)
    mermaid = run(*command, "--format", "mermaid").stdout.splitlines()

    assert (shown["checkpoint_id"], shown["next"], shown["since"]) == (head, ["human_approval"], None)
    assert [node["name"] for node in shown["nodes"] if node["is_current"]] == ["human_approval"]
    assert {edge["source"]: edge["visits"] for edge in shown["edges"] if edge["visits"]} == {
        "START": 1,
        "reasoning": 1,
        "tool_routing": 1,
    }
    assert mermaid[:2] == ["graph TD;", "    __start__([START]):::first"]
    assert {
        "    human_approval(human_approval):::current",
        '    __start__ -- "input ×1" --> reasoning;',
        '    reasoning -. "compacted/steered" .-> reasoning;',
    } <= set(mermaid)


def test_names_that_mermaid_would_misread_are_quoted() -> None:
    edges = {("START", "end"): 1, ("end", 'a "b"'): 1}
    graph = build_graph(None, Visits({"end": 1}, edges, None), is_foreign=True)

    assert list(format_mermaid(graph))[1:7] == [
        "    __start__([START]):::first",
        '    n1("end")',
        '    n2("a #quot;b#quot;")',
        "    __end__([END]):::last",
        '    __start__ -- "×1" --> n1;',
        '    n1 -- "×1" --> n2;',
    ]


@pytest.mark.parametrize(
    ("name", "format_name", "start"),
    [("a.mmd", None, "graph TD;"), ("a.txt", None, "nodes"), ("a.txt", "mermaid", "graph TD;")],
)
def test_a_file_gets_the_format_of_its_name_or_the_option(
    tmp_path: Path, name: str, format_name: str | None, start: str
) -> None:
    show_graph(None, "", None, format_name=format_name, output=tmp_path / name)

    written = (tmp_path / name).read_text(encoding="utf-8")
    assert (written.startswith(start), "×" in written) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "svg"], "terminal, mermaid"),
        (["--format", "mermaid", "--json"], "--json"),
        (["--output", "/"], "Cannot write"),
    ],
)
def test_wrong_options_are_usage_errors(tmp_path: Path, arguments: list[str], words: str) -> None:
    ended = run("graph", *arguments)

    assert isinstance(ended.exception, UsageError)
    assert words in str(ended.exception)
