import pytest

from graph_agent.config.settings import McpServer
from graph_agent.mcp.settings import ServerUnreachable, expand_variables, server_environment, server_program


def test_variables_in_braces_are_replaced_and_nothing_else_is() -> None:
    assert expand_variables("Bearer ${TOKEN} $TOKEN ${}", {"TOKEN": "t"}) == "Bearer t $TOKEN ${}"


def test_a_variable_that_is_not_set_is_named() -> None:
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
