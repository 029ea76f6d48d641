from graph_agent.config.redaction import Redactor
from graph_agent.toolbox.toolbox import redact_result
from tools.base import ToolResult


def test_no_field_of_a_result_keeps_a_secret() -> None:
    key = "sk-abcdefgh"

    found = redact_result(ToolResult(f"o {key}", f"d {key}", f"e {key}", {"m": [key]}), Redactor([key]))

    stars = "*" * len(key)
    assert found == ToolResult(f"o {stars}", f"d {stars}", f"e {stars}", {"m": [stars]})
    assert redact_result(ToolResult("fine"), Redactor([key])) == ToolResult("fine")
