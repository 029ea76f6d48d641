import pytest

from graph_agent.errors import UsageError
from tests.fakes.database_rows import Rows
from tests.fakes.light_commands import asking, run


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"'])
def test_arguments_are_one_json_object(rows: Rows, text: str) -> None:
    asking(rows)

    refused = run("approvals", "edit", "call_a", "--arguments", text, "--db", str(rows.path)).exception

    assert isinstance(refused, UsageError)
    assert repr(text) in str(refused)
