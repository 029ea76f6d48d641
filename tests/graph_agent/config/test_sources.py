from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.project import PROJECT_CONFIG, Project, ProjectFile
from graph_agent.config.settings import ModelSettings, PolicySettings, Settings
from graph_agent.config.sources import IgnoredValue, Layer, Sourced, config_file, load_settings, read_layers
from graph_agent.errors import ConfigError


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"GRAPH_AGENT_HOME": str(tmp_path)}


def write_config(env: dict[str, str], text: str) -> Path:
    path = config_file(env)
    path.write_text(text, encoding="utf-8")
    return path


def message_of(env: dict[str, str], flags: dict[str, Any] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        load_settings(env, flags=flags)
    return str(caught.value)


def test_layers_come_strongest_first_and_name_the_place_of_each_value(env: dict[str, str]) -> None:
    path = write_config(env, 'mode = "plan"\n[model]\nname = "m"\nheaders = {X-A = "b"}\n')
    variables = {"OPENAI_BASE_URL": "http://a", "GRAPH_AGENT_BASE_URL": "http://b"}
    project = Project(
        path.parent, (ProjectFile(PROJECT_CONFIG, "aa", 'mode = "plan"\nkeep_turns = 1\n'),), trust="once"
    )

    layers = read_layers({**env, **variables}, {"mode": "acceptEdits", "max_steps": None}, project)

    assert layers == (
        Layer("flag", {"mode": Sourced("acceptEdits", "flag --mode")}),
        Layer("env", {"model.base_url": Sourced("http://b", "GRAPH_AGENT_BASE_URL")}),
        Layer(
            "project",
            {},
            {
                "mode": IgnoredValue("plan", "a project may only make this stricter"),
                "keep_turns": IgnoredValue(1, "a project may not set this"),
            },
        ),
        Layer(
            "user",
            {
                "mode": Sourced("plan", str(path)),
                "model.name": Sourced("m", str(path)),
                "model.headers": Sourced({"X-A": "b"}, str(path)),
            },
        ),
    )


def test_nothing_set_gives_the_defaults(tmp_path: Path, env: dict[str, str]) -> None:
    settings = load_settings(env)

    assert settings == Settings(database=tmp_path / "data" / "graph-agent.db")
    assert (settings.mode, settings.max_steps, settings.model.is_configured) == ("default", 200, False)


def test_flag_beats_environment_beats_file(tmp_path: Path, env: dict[str, str]) -> None:
    path = write_config(
        env,
        'mode = "plan"\nmax_steps = 7\n[model]\nname = "f"\nbase_url = "http://file/v1/"\n'
        '[policy]\ndeny = ["bash(rm *)"]\n',
    )
    env |= {
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


def test_our_base_url_variable_beats_the_common_one(env: dict[str, str]) -> None:
    env |= {"OPENAI_BASE_URL": "http://common/v1", "GRAPH_AGENT_BASE_URL": "http://ours/v1"}

    assert load_settings(env).model.base_url == "http://ours/v1"


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL"])
@pytest.mark.parametrize(("value", "is_configured"), [("http://x", True), ("", False)])
def test_a_key_or_a_base_url_configures_an_endpoint_unless_it_is_empty(
    env: dict[str, str], variable: str, value: str, is_configured: bool
) -> None:
    assert load_settings({**env, variable: value}).model.is_configured == is_configured


def test_the_config_file_is_found_in_the_xdg_folder(tmp_path: Path) -> None:
    (tmp_path / "graph-agent").mkdir()
    (tmp_path / "graph-agent" / "config.toml").write_text("max_steps = 3")

    assert load_settings({"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}).max_steps == 3


def test_the_byte_order_mark_of_some_editors_is_ignored(env: dict[str, str]) -> None:
    write_config(env, "\ufeffmax_steps = 3\r\nmode = 'plan'\r\n")

    settings = load_settings(env)

    assert (settings.max_steps, settings.mode) == (3, "plan")


_MODES = "Choose one of default, acceptEdits, plan, auto, dontAsk, bypassPermissions."
_ADDRESS = "should be an address that starts with http:// or https://, e.g. http://localhost:11434/v1."


@pytest.mark.parametrize(
    ("variables", "flags", "message"),
    [
        (
            {"OPENAI_BASE_URL": "localhost:8080"},
            {},
            f"OPENAI_BASE_URL: model.base_url = 'localhost:8080': {_ADDRESS}",
        ),
        *(
            ({"GRAPH_AGENT_BASE_URL": url}, {}, f"GRAPH_AGENT_BASE_URL: model.base_url = {url!r}: {_ADDRESS}")
            for url in ("localhost:1/v1", "ftp://x/v1", "http://", "http://x:port/v1", "http://a b/v1")
        ),
        ({"GRAPH_AGENT_MODE": "Plan"}, {}, f"GRAPH_AGENT_MODE: mode = 'Plan': Did you mean 'plan'? {_MODES}"),
        (
            {"OPENAI_API_KEY": "sk-SECRÉT"},
            {},
            (
                "OPENAI_API_KEY: model.api_key = (hidden): "
                "should hold ASCII characters only, as it becomes part of a request header."
            ),
        ),
        (
            {},
            {"max_steps": 0},
            "flag --max-steps: max_steps = 0: Input should be greater than or equal to 1.",
        ),
        (
            {"GRAPH_AGENT_MODE": "bypassPermissions"},
            {"mode": "default"},
            (
                "GRAPH_AGENT_MODE: mode = 'bypassPermissions' is not accepted from a file or the environment. "
                "Give --mode bypassPermissions on the command line."
            ),
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_variable_or_flag(
    env: dict[str, str], variables: dict[str, str], flags: dict[str, Any], message: str
) -> None:
    assert message_of({**env, **variables}, flags) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[model]\nstream = "sometimes"\n', "model.stream = 'sometimes': Choose one of auto, on, off."),
        ("max_steps = true", "max_steps = True: Input should be a number, not true or false."),
        ("[policy]\nallow = 'bash'", "policy.allow = 'bash': Input should be a list."),
        ("[model]\nheaders = 'sk-SECRET'", "model.headers = (hidden): Input should be a table."),
        ("[model]\nbaseurl = 'x'\n", "unknown key 'model.baseurl'. Did you mean 'model.base_url'?"),
        ("base_url = 'x'\n", "unknown key 'base_url'. Did you mean 'model.base_url'?"),
        ("policy = 'x'\n", "unknown key 'policy'. It is a table: write a line [policy], and its keys below that."),
        ("[policy]\nalow = []\n", "unknown key 'policy.alow'. Did you mean 'policy.allow'?"),
        ("zzz = 1\n", "unknown key 'zzz'. `graph-agent config show` lists all there are."),
        ("model = 3", "unknown key 'model'. It is a table: write a line [model], and its keys below that."),
    ],
)
def test_a_wrong_line_of_the_file_is_named_with_what_is_expected(
    env: dict[str, str], text: str, message: str
) -> None:
    path = write_config(env, text)

    assert message_of(env) == f"{path}: {message}"


@pytest.mark.parametrize("content", [b"mode = ", b"\xe9", b"x = " + b"[" * 5000])
def test_a_file_that_is_not_toml_is_named(env: dict[str, str], content: bytes) -> None:
    config_file(env).write_bytes(content)

    message = message_of(env)

    assert message.startswith(f"{config_file(env)} is not valid TOML: ")
    assert message.endswith("Correct it or move it away.")


def test_bypassing_is_accepted_from_the_flag_only(env: dict[str, str]) -> None:
    by_flag = load_settings(env, flags={"mode": "bypassPermissions"}).mode
    write_config(env, 'mode = "bypassPermissions"')

    assert by_flag == "bypassPermissions"
    assert "not accepted from a file or the environment" in message_of(env)


def test_keys_and_headers_are_hidden_in_settings(env: dict[str, str]) -> None:
    write_config(env, "[model]\nheaders = {X-Key = 'sk-SECRET'}\n")

    settings = load_settings({**env, "OPENAI_API_KEY": "sk-SECRET"})

    assert "SECRET" not in repr(settings) + settings.model_dump_json()
