from pathlib import Path

import pytest

from graph_agent.config.project import PROJECT_CONFIG, Project, ProjectFile
from graph_agent.config.sources import IgnoredValue, Layer, Sourced, config_file, read_layers
from graph_agent.errors import ConfigError


def test_layers_come_strongest_first_and_say_where_each_value_stands(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "OPENAI_BASE_URL": "http://a", "GRAPH_AGENT_BASE_URL": "http://b"}
    path = config_file(env)
    path.write_text('mode = "plan"\n[model]\nname = "m"\n', encoding="utf-8")

    layers = read_layers(env, {"mode": "acceptEdits", "max_steps": None})

    assert layers == (
        Layer("flag", {"mode": Sourced("acceptEdits", "flag --mode")}),
        Layer("env", {"model.base_url": Sourced("http://b", "GRAPH_AGENT_BASE_URL")}),
        Layer("user", {"mode": Sourced("plan", str(path)), "model.name": Sourced("m", str(path))}),
    )


def test_a_project_stands_between_the_environment_and_the_user(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path)}
    file = ProjectFile(PROJECT_CONFIG, "aa", 'mode = "plan"\nkeep_turns = 1\n')
    project = Project(tmp_path, (file,), trust="once")

    layers = read_layers(env, {}, project)

    assert layers[2:] == (
        Layer(
            "project",
            {"mode": Sourced("plan", str(project.config_path))},
            {"keep_turns": IgnoredValue(1, "a project may not set this")},
        ),
        Layer("user", {}),
    )


def test_bypassing_is_refused_wherever_it_stands_but_on_the_command_line(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path)}

    with pytest.raises(ConfigError, match="not accepted from a file or the environment"):
        read_layers({**env, "GRAPH_AGENT_MODE": "bypassPermissions"}, {})
    assert read_layers(env, {"mode": "bypassPermissions"})[0].values["mode"].value == "bypassPermissions"
