from pathlib import Path

import pytest

from graph_agent.cli.views.format import default_workspace, resolve_database


def test_a_named_file_stands_for_itself_and_for_threads_of_any_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_DB", "/env/graph-agent.db")
    monkeypatch.chdir(tmp_path)

    assert (resolve_database("/named.db"), default_workspace("/named.db")) == (Path("/named.db"), None)
    assert (resolve_database(None), default_workspace(None)) == (Path("/env/graph-agent.db"), str(tmp_path))
