import pytest
from pydantic import SecretStr

from graph_agent.config.settings import McpServer
from graph_agent.mcp.settings import (
    ServerUnreachable,
    expand_variables,
    fingerprint,
    server_environment,
    server_program,
)


def test_variables_in_braces_are_replaced_and_one_that_is_not_set_is_named() -> None:
    assert expand_variables("Bearer ${TOKEN} $TOKEN ${}", {"TOKEN": "t"}) == "Bearer t $TOKEN ${}"
    with pytest.raises(ServerUnreachable, match=r"\$\{TOKEN\}, which is not set"):
        expand_variables("${TOKEN}", {})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("npx", "program 'npx' not found; install it: it comes with Node.js"),
        ("no-such", "program 'no-such' not found; correct `command`, or install it"),
    ],
)
def test_a_program_that_is_missing_is_named_with_where_it_comes_from(command: str, said: str) -> None:
    server = McpServer(command=command, env={"PATH": "/nowhere"})  # type: ignore[dict-item]  # pydantic wraps it

    with pytest.raises(ServerUnreachable) as caught:
        server_program(server, server_environment(server))

    assert str(caught.value) == said


_SERVER = McpServer(command="server", args=("--x",), env={"TOKEN": SecretStr("one")})


@pytest.mark.parametrize(
    ("change", "is_other"),
    [
        ({"command": "other"}, True),
        ({"args": ("--y",)}, True),
        ({"env": {"TOKEN": SecretStr("two")}}, True),
        ({"command": None, "url": "http://localhost/mcp"}, True),
        ({"timeout": 5}, False),
    ],
)
def test_the_fingerprint_changes_with_what_is_started_or_reached_and_holds_no_secret(
    change: dict[str, object], is_other: bool
) -> None:
    assert (fingerprint(_SERVER.model_copy(update=change)) != fingerprint(_SERVER)) == is_other
    assert (len(fingerprint(_SERVER)), "one" in fingerprint(_SERVER)) == (64, False)
