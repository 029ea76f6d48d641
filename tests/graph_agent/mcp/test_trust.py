import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from graph_agent.config.settings import McpServer
from graph_agent.errors import StorageError
from graph_agent.mcp.trust import TrustFile, fingerprint

_SERVER = McpServer(command="server", args=("--x",), env={"TOKEN": SecretStr("one")})


def test_what_is_trusted_is_remembered_in_a_private_file_until_it_is_withdrawn(tmp_path: Path) -> None:
    path = tmp_path / "data" / "trust.json"
    TrustFile(path).add("hub", _SERVER, "2026-01-01T00:00:00Z")

    known = TrustFile(path).has(_SERVER)
    mode, text = stat.S_IMODE(path.stat().st_mode), path.read_text()
    TrustFile(path).forget("hub")

    assert (known, TrustFile(path).has(_SERVER), mode) == (True, False, 0o600)
    assert "one" not in text.replace('"name"', "")


@pytest.mark.parametrize(
    "change",
    [
        {"command": "other"},
        {"args": ("--y",)},
        {"env": {"TOKEN": SecretStr("two")}},
        {"command": None, "url": "http://localhost/mcp"},
    ],
)
def test_any_change_of_what_is_started_or_reached_has_to_be_trusted_anew(change: dict[str, object]) -> None:
    assert fingerprint(_SERVER.model_copy(update=change)) != fingerprint(_SERVER)


def test_a_time_limit_is_no_reason_to_ask_again() -> None:
    assert fingerprint(_SERVER.model_copy(update={"timeout": 5})) == fingerprint(_SERVER)


@pytest.mark.parametrize("text", ["{", "[]", '{"servers": {"a": 1}}', "\x00"])
def test_a_damaged_file_trusts_nobody_and_says_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trust.json"
    path.write_text(text)

    with pytest.raises(StorageError, match="trust the servers again"):
        TrustFile(path).has(_SERVER)
    assert path.read_text() == text
