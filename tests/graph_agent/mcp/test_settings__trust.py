import pytest
from pydantic import SecretStr

from graph_agent.config.settings import McpServer
from graph_agent.mcp.settings import fingerprint

_SERVER = McpServer(command="server", args=("--x",), env={"TOKEN": SecretStr("one")})


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


def test_no_secret_can_be_read_out_of_it() -> None:
    assert (len(fingerprint(_SERVER)), "one" in fingerprint(_SERVER)) == (64, False)
