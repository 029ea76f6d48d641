from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel, ValidationError

import policy
from graph_agent.acp.choices import mode_state
from graph_agent.cli.chat import command_table
from graph_agent.config.settings import (
    OPENAI_BASE_URL,
    SECRET_KEYS,
    SELECTABLE_MODES,
    ExampledRule,
    Hook,
    HookSettings,
    McpServer,
    Mode,
    ModelSettings,
    PolicySettings,
    Price,
    SearchSettings,
    Settings,
    known_keys,
    suggest_key,
)
from graph_agent.storage.sqlite import row_values

_ADDRESS = "should be an address that starts with"


def test_settings_cannot_be_changed() -> None:
    settings = Settings(database=Path("x.db"))

    with pytest.raises(ValidationError, match="frozen"):
        settings.mode = "plan"


@pytest.mark.parametrize(
    ("section", "table", "message"),
    [
        (Settings, {"database": "x.db", "other": 1}, "Extra inputs"),
        (Settings, {"database": "x.db", "models": {"m": {"local": "a.gguf"}}}, r"stands in \[model\] alone"),
        (PolicySettings, {"allow": [{"rule": "grep", "matches": ["grep"]}]}, "matches"),
        (Hook, {}, "Field required"),
        (Hook, {"command": " "}, "should be a shell command"),
        (Hook, {"command": "a\0b"}, "should be a shell command"),
        (Hook, {"command": "c", "timeout": 0}, "greater than 0"),
        (ModelSettings, {"base_url": "http://host/v1?api-version=1"}, "should end with its path"),
        (ModelSettings, {"name": ""}, "should name a model"),
        (ModelSettings, {"name": " \t"}, "should name a model"),
        (Price, {"input": 1, "output": 1e308}, "less than or equal to 1000000000"),
        *((SearchSettings, {"url": url}, _ADDRESS) for url in ("localhost:8080", "http://x/?q=", "http://x/#a")),
        *(
            (McpServer, {"url": url}, _ADDRESS)
            for url in ("x/mcp", "ftp://x/", "http://", "http://x/#a", "http://x:0/")
        ),
        (McpServer, {}, "either a command or a url"),
        (McpServer, {"command": "x", "url": "http://y/"}, "either a command or a url"),
    ],
)
def test_an_invalid_table_is_refused(section: type[BaseModel], table: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        section.model_validate(table)


def test_a_rule_is_a_text_or_a_table_with_examples() -> None:
    policy = PolicySettings.model_validate({"allow": ["ls", {"rule": "grep", "match": ["grep"]}]})

    assert policy.rules("allow") == (ExampledRule(rule="ls"), ExampledRule(rule="grep", match=("grep",)))
    assert (policy.rules("ask"), policy.rules("deny")) == ((), ())


def test_a_hook_is_a_command_for_every_tool_with_a_minute_to_end() -> None:
    hooks = HookSettings.model_validate({"before_tool": [{"command": "true"}]})

    assert hooks.before_tool == (Hook(command="true", matcher="", timeout=60.0, on_failure="continue"),)


def test_requests_go_to_openai_unless_a_base_url_is_set() -> None:
    given = [" http://[::1]:8080/v1/ ", "http://[::1]:8080/v1/chat/completions"]

    assert ModelSettings().endpoint == OPENAI_BASE_URL
    assert [ModelSettings(base_url=url).endpoint for url in given] == ["http://[::1]:8080/v1"] * 2


def test_a_key_loses_the_line_end_it_was_pasted_with() -> None:
    key = ModelSettings.model_validate({"api_key": "sk-1\n"}).api_key

    assert key is not None
    assert key.get_secret_value() == "sk-1"


@pytest.mark.parametrize("url", ["https://x/mcp/", "http://localhost:8000/mcp?key=k", "http://[::1]:9/"])
def test_the_address_of_a_server_is_kept_as_written(url: str) -> None:
    assert McpServer(url=f" {url} ").url == url


def test_every_setting_of_a_server_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "mcp.md").read_text(encoding="utf-8")

    assert [name for name in McpServer.model_fields if f"| `{name}` |" not in page] == []


def test_every_list_of_modes_is_the_same() -> None:
    # The layers below policy and settings, and the commands that start fast, have lists of their own.
    offered = tuple(one["id"] for one in mode_state("default")["availableModes"])

    assert {get_args(Mode), policy.MODES, row_values.MODES} == {(*SELECTABLE_MODES, "bypassPermissions")}
    assert tuple(command_table.MODES) == SELECTABLE_MODES == offered


def test_keys_are_dotted_and_leave_out_what_no_file_sets() -> None:
    keys = known_keys()

    assert {"model.name", "policy.deny", "mode", "max_steps", "database", *SECRET_KEYS} <= set(keys)
    assert {"origins", "model"} & set(keys) == set()


@pytest.mark.parametrize(
    ("written", "advice"),
    [
        ("model.nam", "Did you mean 'model.name'?"),
        ("base_url", "Did you mean 'model.base_url'?"),
        ("max_step", "Did you mean 'max_steps'?"),
        ("zzz", "`graph-agent config show` lists all there are."),
        ("model", "It is a table: write a line [model], and its keys below that."),
    ],
)
def test_an_unknown_key_is_answered_with_the_one_that_was_meant(written: str, advice: str) -> None:
    assert suggest_key(written) == advice
