import pytest

from graph_agent.mcp.transport import CannotReach, expanded


def test_variables_in_braces_are_replaced_and_nothing_else_is() -> None:
    assert expanded("Bearer ${TOKEN} $TOKEN ${}", {"TOKEN": "t"}) == "Bearer t $TOKEN ${}"


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(CannotReach, match=r"\$\{TOKEN\}, which is not set"):
        expanded("${TOKEN}", {})
