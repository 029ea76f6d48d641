from pathlib import Path

import pytest
from pydantic import ValidationError

from graph_agent.config.settings import ExampledRule, McpServer, PolicySettings, Settings


def test_settings_cannot_be_changed_and_take_no_unknown_field() -> None:
    settings = Settings(database=Path("x.db"))

    with pytest.raises(ValidationError, match="frozen"):
        settings.mode = "plan"
    with pytest.raises(ValidationError, match="Extra inputs"):
        Settings.model_validate({"database": "x.db", "other": 1})


def test_a_local_model_is_no_profile() -> None:
    with pytest.raises(ValidationError, match=r"stands in \[model\] alone"):
        Settings.model_validate({"database": "x.db", "models": {"tiny": {"local": "a.gguf"}}})


def test_a_rule_is_a_text_or_a_table_with_examples() -> None:
    policy = PolicySettings.model_validate({"allow": ["ls", {"rule": "grep", "match": ["grep"]}]})

    assert policy.rules("allow") == (ExampledRule(rule="ls"), ExampledRule(rule="grep", match=("grep",)))
    assert (policy.rules("ask"), policy.rules("deny")) == ((), ())
    with pytest.raises(ValidationError, match="matches"):
        PolicySettings.model_validate({"allow": [{"rule": "grep", "matches": ["grep"]}]})


def test_every_setting_of_a_server_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8")

    assert [name for name in McpServer.model_fields if f"| `{name}` |" not in page] == []
