import pytest
from pydantic import ValidationError

from graph_agent.config.settings import Hook, HookSettings


def test_a_hook_is_a_command_for_every_tool_with_a_minute_to_end() -> None:
    made = HookSettings.model_validate({"before_tool": [{"command": "true"}]})

    assert made.before_tool == (Hook(command="true", matcher="", timeout=60.0, on_failure="continue"),)


@pytest.mark.parametrize("table", [{}, {"command": " "}, {"command": "a\0b"}, {"command": "c", "timeout": 0}])
def test_a_hook_without_a_command_or_time_is_refused(table: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Hook.model_validate(table)
