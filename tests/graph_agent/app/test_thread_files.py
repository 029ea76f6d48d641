import json
from pathlib import Path

import pytest

from graph_agent.app.thread_files import exported
from graph_agent.errors import UnknownId
from tests.fakes.played_thread import play


def test_the_thread_meant_goes_out_without_the_keys_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path / "agent.db", "my key is sk-of-this-shell")
    monkeypatch.setenv("SOME_API_KEY", "sk-of-this-shell")

    with exported(tmp_path / "agent.db", "read-1", None) as lines:
        document = json.loads("".join(lines))

    assert (document["thread_id"], document["rows"][0]["title"]) == ("thread-1", f"my key is {'*' * 16}")


def test_an_unknown_thread_is_refused(tmp_path: Path) -> None:
    play(tmp_path / "agent.db", "go")

    with pytest.raises(UnknownId), exported(tmp_path / "agent.db", "nowhere", None):
        pass
