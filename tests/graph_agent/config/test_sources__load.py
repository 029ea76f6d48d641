from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.settings import ModelSettings, PolicySettings, Settings
from graph_agent.config.sources import load_settings
from graph_agent.errors import ConfigError


def write_config(home: Path, text: str) -> Path:
    path = home / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(env: dict[str, str], flags: dict[str, Any] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(env, flags=flags)
    return str(caught.value)


def test_nothing_set_gives_the_defaults(tmp_path: Path) -> None:
    settings = load_settings({"GRAPH_AGENT_HOME": str(tmp_path)})

    assert settings == Settings(database=tmp_path / "data" / "graph-agent.db")
    assert (settings.mode, settings.max_steps, settings.model.is_configured) == ("default", 200, False)


def test_flag_beats_environment_beats_file(tmp_path: Path) -> None:
    path = write_config(
        tmp_path,
        'mode = "plan"\nmax_steps = 7\n[model]\nname = "f"\nbase_url = "http://file/v1/"\n'
        '[policy]\ndeny = ["bash(rm *)"]\n',
    )
    env = {
        "GRAPH_AGENT_HOME": str(tmp_path),
        "GRAPH_AGENT_MODE": "acceptEdits",
        "GRAPH_AGENT_MODEL": "e",
        "GRAPH_AGENT_DB": str(tmp_path / "e.db"),
    }

    settings = load_settings(env, flags={"model.name": "g", "database": str(tmp_path / "g.db"), "mode": None})

    assert settings == Settings(
        model=ModelSettings(name="g", base_url="http://file/v1"),
        policy=PolicySettings(deny=("bash(rm *)",)),
        mode="acceptEdits",
        max_steps=7,
        database=tmp_path / "g.db",
        origins={
            "mode": "GRAPH_AGENT_MODE",
            "max_steps": str(path),
            "model.name": "flag --model",
            "model.base_url": str(path),
            "policy.deny": str(path),
            "database": "flag --db",
        },
    )


def test_our_base_url_variable_beats_the_common_one(tmp_path: Path) -> None:
    env = {
        "GRAPH_AGENT_HOME": str(tmp_path),
        "OPENAI_BASE_URL": "http://common/v1",
        "GRAPH_AGENT_BASE_URL": "http://ours/v1",
    }

    assert load_settings(env).model.base_url == "http://ours/v1"


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL"])
def test_a_key_or_a_base_url_alone_configures_an_endpoint_and_an_empty_one_does_not(
    tmp_path: Path, variable: str
) -> None:
    home = {"GRAPH_AGENT_HOME": str(tmp_path)}

    configured = [load_settings({**home, variable: value}).model.is_configured for value in ("http://x", "")]

    assert configured == [True, False]


def test_the_config_file_is_found_in_the_xdg_folder(tmp_path: Path) -> None:
    (tmp_path / "graph-agent").mkdir()
    write_config(tmp_path / "graph-agent", "max_steps = 3")

    assert load_settings({"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}).max_steps == 3


def test_a_wrong_value_is_named_with_its_file_key_value_and_what_is_expected(tmp_path: Path) -> None:
    path = write_config(tmp_path, '[model]\nstream = "sometimes"\n')

    assert complaint({"GRAPH_AGENT_HOME": str(tmp_path)}) == (
        f"{path}: model.stream = 'sometimes': Input should be 'auto', 'on' or 'off'."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max_steps = true", "max_steps = True: Input should be a number, not true or false."),
        ("[policy]\nallow = 'bash'", "policy.allow = 'bash': Input should be a list."),
        ("[model]\nheaders = 'x'", "model.headers = (hidden): Input should be a table."),
        ("x = " + "[" * 5000, "is not valid TOML: it is nested too deeply. Correct it or move it away."),
    ],
)
def test_a_value_of_another_type_is_told_in_the_words_of_the_file(tmp_path: Path, text: str, said: str) -> None:
    write_config(tmp_path, text)

    assert complaint({"GRAPH_AGENT_HOME": str(tmp_path)}).endswith(said)


def test_the_mark_that_some_editors_begin_a_file_with_is_no_part_of_it(tmp_path: Path) -> None:
    write_config(tmp_path, "\ufeffmax_steps = 3\r\nmode = 'plan'\r\n")

    settings = load_settings({"GRAPH_AGENT_HOME": str(tmp_path)})

    assert (settings.max_steps, settings.mode) == (3, "plan")


def test_a_wrong_value_is_named_with_its_variable(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "OPENAI_BASE_URL": "localhost:8080"}

    assert complaint(env) == (
        "OPENAI_BASE_URL: model.base_url = 'localhost:8080': "
        "should be an address that starts with http:// or https://, e.g. http://localhost:11434/v1."
    )


def test_a_wrong_value_is_named_with_its_flag(tmp_path: Path) -> None:
    message = complaint({"GRAPH_AGENT_HOME": str(tmp_path)}, {"max_steps": 0})

    assert message == "flag --max-steps: max_steps = 0: Input should be greater than or equal to 1."


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("[model]\nbaseurl = 'x'\n", "unknown key 'model.baseurl'. Did you mean 'model.base_url'?"),
        ("base_url = 'x'\n", "unknown key 'base_url'. Did you mean 'model.base_url'?"),
        ("policy = 'x'\n", "unknown key 'policy'. It is a table: write a line [policy], and its keys below that."),
        ("[policy]\nalow = []\n", "unknown key 'policy.alow'. Did you mean 'policy.allow'?"),
        ("zzz = 1\n", "unknown key 'zzz'. `graph-agent config show` lists all there are."),
    ],
)
def test_an_unknown_key_is_an_error_with_a_near_match(tmp_path: Path, text: str, near: str) -> None:
    path = write_config(tmp_path, text)

    assert complaint({"GRAPH_AGENT_HOME": str(tmp_path)}) == f"{path}: {near}"


@pytest.mark.parametrize("content", [b"mode = ", b"\xff\xfe", b"model = 3"])
def test_a_file_that_is_not_what_it_should_be_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "config.toml").write_bytes(content)

    assert str(tmp_path / "config.toml") in complaint({"GRAPH_AGENT_HOME": str(tmp_path)})


def test_a_mode_that_is_not_offered_is_refused_with_those_that_are(tmp_path: Path) -> None:
    home = {"GRAPH_AGENT_HOME": str(tmp_path)}

    choice = "Input should be 'default', 'acceptEdits', 'plan', 'auto', 'dontAsk' or 'bypassPermissions'."
    assert complaint({**home, "GRAPH_AGENT_MODE": "Plan"}) == f"GRAPH_AGENT_MODE: mode = 'Plan': {choice}"
    assert load_settings({**home, "GRAPH_AGENT_MODE": "auto"}).mode == "auto"


def test_bypass_is_taken_from_the_flag_only(tmp_path: Path) -> None:
    home = {"GRAPH_AGENT_HOME": str(tmp_path)}
    by_flag = load_settings(home, flags={"mode": "bypassPermissions"}).mode
    from_environment = complaint({**home, "GRAPH_AGENT_MODE": "bypassPermissions"}, {"mode": "default"})
    write_config(tmp_path, 'mode = "bypassPermissions"')

    from_file = complaint(home)

    assert by_flag == "bypassPermissions"
    assert "not accepted from a file or the environment" in from_environment
    assert "not accepted from a file or the environment" in from_file


def test_keys_and_headers_are_hidden_in_settings_and_complaints(tmp_path: Path) -> None:
    write_config(tmp_path, "[model]\nheaders = {X-Key = 'sk-SECRET'}\n")
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-SECRET"}
    shown = repr(load_settings(env)) + load_settings(env).model_dump_json()
    write_config(tmp_path, "[model]\nheaders = 'sk-SECRET'\n")

    message = complaint(env)

    assert "SECRET" not in shown + message
    assert "model.headers = (hidden)" in message


@pytest.mark.parametrize("url", ["localhost:1/v1", "ftp://x/v1", "http://", "http://x:port/v1", "http://a b/v1"])
def test_what_is_no_http_address_is_refused(tmp_path: Path, url: str) -> None:
    assert "starts with http:// or https://" in complaint(
        {"GRAPH_AGENT_HOME": str(tmp_path), "GRAPH_AGENT_BASE_URL": url}
    )


def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(tmp_path: Path) -> None:
    message = complaint({"GRAPH_AGENT_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-SECRÉT"})

    assert message == (
        "OPENAI_API_KEY: model.api_key = (hidden): "
        "should hold ASCII characters only, as it becomes part of a request header."
    )
