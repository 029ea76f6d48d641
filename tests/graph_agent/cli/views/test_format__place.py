from pathlib import Path

import pytest

from graph_agent.cli.views.format import database_of, workspace_of


def test_a_named_file_stands_for_itself_and_for_threads_of_any_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_DB", "/env/graph-agent.db")
    monkeypatch.chdir(tmp_path)

    assert (database_of("/named.db"), workspace_of("/named.db")) == (Path("/named.db"), None)
    assert (database_of(None), workspace_of(None)) == (Path("/env/graph-agent.db"), str(tmp_path))
