from pathlib import Path

import pytest

from graph_agent.config.layers import Found, Layer, config_file, flattened, read_layers
from graph_agent.errors import ConfigError


def test_layers_come_strongest_first_and_say_where_each_value_stands(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "OPENAI_BASE_URL": "http://a", "GRAPH_AGENT_BASE_URL": "http://b"}
    path = config_file(env)
    path.write_text('mode = "plan"\n[model]\nname = "m"\n', encoding="utf-8")

    layers = read_layers(env, {"mode": "acceptEdits", "max_steps": None})

    assert layers == (
        Layer("flag", {"mode": Found("acceptEdits", "flag --mode")}),
        Layer("env", {"model.base_url": Found("http://b", "GRAPH_AGENT_BASE_URL")}),
        Layer("user", {"mode": Found("plan", str(path)), "model.name": Found("m", str(path))}),
    )


def test_a_table_that_is_a_value_stays_whole() -> None:
    tables = {"model": {"headers": {"X-A": "b"}}, "mode": "plan"}

    assert dict(flattened(tables)) == {"model.headers": {"X-A": "b"}, "mode": "plan"}


def test_bypassing_is_refused_wherever_it_stands_but_on_the_command_line(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path)}

    with pytest.raises(ConfigError, match="never taken from a file or the environment"):
        read_layers({**env, "GRAPH_AGENT_MODE": "bypassPermissions"}, {})
    assert read_layers(env, {"mode": "bypassPermissions"})[0].values["mode"].value == "bypassPermissions"
