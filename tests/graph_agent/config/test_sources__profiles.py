from pathlib import Path

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


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "config.toml").write_text(_FILE, encoding="utf-8")
    return {"GRAPH_AGENT_HOME": str(tmp_path)}


_HERE = ModelSettings(
    name="big",
    base_url="http://here/v1",
    api_key=SecretStr("sk-here"),
    headers={"X-Team": SecretStr("ours")},
    context_window=1000,
    timeout_s=30,
)


def test_a_profile_inherits_what_it_leaves_unset(env: dict[str, str]) -> None:
    settings = load_settings(env)

    assert model_settings_for(settings, "patient") == _HERE.model_copy(update={"timeout_s": 900.0})


def test_another_model_does_not_inherit_the_size_of_a_window(env: dict[str, str]) -> None:
    settings = load_settings(env)

    assert model_settings_for(settings, "fast") == _HERE.model_copy(
        update={"name": "small", "stream": "off", "context_window": None}
    )
    assert model_settings_for(settings, "medium") == _HERE.model_copy(
        update={"name": "medium", "context_window": None}
    )
    assert model_settings_for(settings, "big") == _HERE


def test_keys_and_headers_go_to_no_other_address_than_the_one_they_stand_beside(env: dict[str, str]) -> None:
    settings = load_settings(env)

    assert model_settings_for(settings, "elsewhere") == ModelSettings(base_url="https://there/v1", timeout_s=30)
    assert model_settings_for(settings, "mine") == _HERE.model_copy(update={"api_key": SecretStr("sk-mine")})


@pytest.mark.parametrize("chosen_by", ["flag", "environment", "file"])
def test_a_name_is_looked_up_among_the_profiles_first(env: dict[str, str], chosen_by: str) -> None:
    flags = {"model.name": "patient"} if chosen_by == "flag" else {}
    variables = {"GRAPH_AGENT_MODEL": "patient"} if chosen_by == "environment" else {}
    if chosen_by == "file":
        path = Path(env["GRAPH_AGENT_HOME"]) / "config.toml"
        path.write_text(_FILE.replace('"big"', '"patient"'), encoding="utf-8")
        expected = None
    else:
        expected = "big"

    settings = load_settings({**env, **variables}, flags=flags)

    assert (settings.profile, settings.model.name, settings.model.timeout_s) == ("patient", expected, 900.0)


def test_a_model_that_is_no_profile_is_one_of_the_endpoint_in_use(env: dict[str, str]) -> None:
    settings = with_model(load_settings(env), "elsewhere")

    changed = with_model(settings, "theirs")

    assert (changed.profile, changed.model) == (
        "elsewhere",
        ModelSettings(name="theirs", base_url="https://there/v1", timeout_s=30),
    )
    assert with_model(changed, "fast").model == model_settings_for(load_settings(env), "fast")


def test_without_profiles_a_name_is_all_that_changes() -> None:
    settings = Settings(database=Path("x.db"), model=ModelSettings(name="a", base_url="http://here/v1"))

    assert model_settings_for(settings, "b") == ModelSettings(name="b", base_url="http://here/v1")
