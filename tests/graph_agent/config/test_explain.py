from pathlib import Path

import pytest

from graph_agent.config.explain import LayerValue, describe_type, explain, explain_all
from graph_agent.config.project import PROJECT_CONFIG, Project, ProjectFile, Trust
from graph_agent.config.settings import known_keys
from graph_agent.errors import ConfigError, UsageError


def test_every_layer_says_its_part_and_the_strongest_that_speaks_wins(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('mode = "plan"\n', encoding="utf-8")
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "GRAPH_AGENT_MODE": "acceptEdits"}

    found = explain("mode", env)

    assert (found.value, found.layer, found.origin) == ("acceptEdits", "env", "GRAPH_AGENT_MODE")
    assert found.layers == (
        LayerValue("flag", "--mode", None, speaks=False),
        LayerValue("env", "GRAPH_AGENT_MODE", "acceptEdits", speaks=True),
        LayerValue("user", str(tmp_path / "config.toml"), "plan", speaks=True),
        LayerValue("default", "", "default", speaks=True),
    )


def test_no_secret_is_in_any_explanation(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[model]\napi_key = "sk-file"\nbase_url = "http://me:geheim@host/v1"\nheaders = {X-Key = "sk-header"}\n'
        '[models.m]\napi_key = "sk-m"\nbase_url = "http://me:geheim@there/v1"\nheaders = {X-Key = "sk-n"}\n',
        encoding="utf-8",
    )
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "OPENAI_API_KEY": "sk-env"}

    found = {one.key: one for one in explain_all(env)}

    assert found["model.api_key"].value == "set (env OPENAI_API_KEY)"
    assert found["model.headers"].value == "set (X-Key)"
    assert found["model.base_url"].value == "http://host/v1"
    assert found["models"].value == {"m": {"api_key": "set", "base_url": "http://there/v1", "headers": ["X-Key"]}}
    assert [word for word in ("sk-", "geheim") if word in repr(found)] == []


def test_all_keys_and_the_database_are_explained(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "GRAPH_AGENT_DB": str(tmp_path / "x.db")}

    found = explain_all(env)

    assert [one.key for one in found] == [*known_keys(), "database"]
    assert all(one.description and one.allowed for one in found)
    assert (found[-1].value, found[-1].layer) == (str(tmp_path / "x.db"), "env")


def test_an_unknown_key_and_a_wrong_value_are_named(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path)}

    with pytest.raises(UsageError, match="No setting is named 'modes'"):
        explain("modes", env)
    with pytest.raises(ConfigError, match="GRAPH_AGENT_MODE: mode = 'zz'"):
        explain("max_steps", {**env, "GRAPH_AGENT_MODE": "zz"})


def _project(folder: Path, trust: Trust) -> Project:
    text = '[policy]\ndeny = ["bash(dd *)"]\n[mcp_servers.db]\ncommand = "x"\nenv = {TOKEN = "geheim"}\n'
    return Project(folder, (ProjectFile(PROJECT_CONFIG, "aa", text),), trust=trust)


def test_what_a_trusted_project_adds_joins_the_users_own(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[policy]\ndeny = ["bash(rm *)"]\n', encoding="utf-8")
    env, project = {"GRAPH_AGENT_HOME": str(tmp_path)}, _project(tmp_path, "trusted")

    found = explain("policy.deny", env, project)

    assert (found.value, found.layer, found.origin) == (
        ["bash(rm *)", "bash(dd *)"],
        "project",
        str(project.config_path),
    )
    assert explain("mcp_servers", env, project).value == {"db": {"command": "x", "env": ["TOKEN"]}}


def test_what_a_project_says_in_vain_is_shown_with_the_reason_and_without_secrets(tmp_path: Path) -> None:
    env, project = {"GRAPH_AGENT_HOME": str(tmp_path)}, _project(tmp_path, "untrusted")

    found = {one.key: one for one in explain_all(env, project)}

    assert (found["policy.deny"].value, found["policy.deny"].layer) == ([], "default")
    assert found["policy.deny"].layers[2] == LayerValue(
        "project", str(project.config_path), ["bash(dd *)"], speaks=False, ignored="folder not trusted"
    )
    assert "geheim" not in repr(found)


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("model.stream", "auto, on, off"),
        ("max_steps", "integer, at least 1"),
        ("model.timeout_s", "number, above 0"),
        ("policy.deny", "list of texts and tables"),
        ("model.headers", "table"),
    ],
)
def test_what_a_key_takes_is_told_in_words(key: str, kind: str) -> None:
    assert describe_type(key) == kind
