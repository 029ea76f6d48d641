from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.config.sources import load_settings, model_settings_for, with_model

_FILE = """
[model]
name = "big"
base_url = "http://here/v1"
api_key = "sk-here"
headers = {X-Team = "ours"}
context_window = 1000
timeout_s = 30

[models.fast]
name = "small"
stream = "off"

[models.patient]
timeout_s = 900

[models.elsewhere]
base_url = "https://there/v1"

[models.mine]
base_url = "http://here/v1/"
api_key = "sk-mine"
"""
_HERE = ModelSettings(
    name="big",
    base_url="http://here/v1",
    api_key=SecretStr("sk-here"),
    headers={"X-Team": SecretStr("ours")},
    context_window=1000,
    timeout_s=30,
)
_THERE = ModelSettings(base_url="https://there/v1", timeout_s=30)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(_FILE, encoding="utf-8")
    return {"GRAPH_AGENT_HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("big", {}),
        ("patient", {"timeout_s": 900.0}),
        ("fast", {"name": "small", "stream": "off", "context_window": None}),
        ("medium", {"name": "medium", "context_window": None}),
        ("mine", {"api_key": SecretStr("sk-mine")}),
    ],
)
def test_a_profile_inherits_what_it_leaves_unset_and_what_does_not_belong_to_another_model(
    env: dict[str, str], name: str, changed: dict[str, Any]
) -> None:
    assert model_settings_for(load_settings(env), name) == _HERE.model_copy(update=changed)


def test_keys_and_headers_go_to_no_other_address(env: dict[str, str]) -> None:
    assert model_settings_for(load_settings(env), "elsewhere") == _THERE


@pytest.mark.parametrize("chosen_by", ["flag", "environment", "file"])
def test_a_name_is_looked_up_among_the_profiles_first(env: dict[str, str], chosen_by: str) -> None:
    flags = {"model.name": "patient"} if chosen_by == "flag" else {}
    variables = {"GRAPH_AGENT_MODEL": "patient"} if chosen_by == "environment" else {}
    if chosen_by == "file":
        path = Path(env["GRAPH_AGENT_HOME"]) / "config.toml"
        path.write_text(_FILE.replace('"big"', '"patient"'), encoding="utf-8")

    settings = load_settings({**env, **variables}, flags=flags)

    expected = None if chosen_by == "file" else "big"
    assert (settings.profile, settings.model.name, settings.model.timeout_s) == ("patient", expected, 900.0)


def test_a_model_that_is_no_profile_is_one_of_the_endpoint_in_use(env: dict[str, str]) -> None:
    settings = load_settings(env)

    changed = with_model(with_model(settings, "elsewhere"), "theirs")

    assert (changed.profile, changed.model) == ("elsewhere", _THERE.model_copy(update={"name": "theirs"}))
    assert with_model(changed, "fast").model == model_settings_for(settings, "fast")


def test_without_profiles_a_name_is_all_that_changes() -> None:
    settings = Settings(database=Path("x.db"), model=ModelSettings(name="a", base_url="http://here/v1"))

    assert model_settings_for(settings, "b") == ModelSettings(name="b", base_url="http://here/v1")


def test_a_flag_for_the_model_holds_for_every_profile_also_one_that_sets_the_key(env: dict[str, str]) -> None:
    path = Path(env["GRAPH_AGENT_HOME"]) / "config.toml"
    path.write_text(_FILE.replace('stream = "off"', 'effort = "low"'), encoding="utf-8")

    def efforts(flags: dict[str, str]) -> list[str]:
        settings = load_settings(env, flags=flags)
        return [model_settings_for(settings, name).effort for name in ("big", "fast", "elsewhere")]

    assert (efforts({}), efforts({"model.effort": "high"})) == (["auto", "low", "auto"], ["high"] * 3)
