from pathlib import Path

import pytest

from graph_agent.config.explain import LayerValue, describe_type, explain, explain_all
from graph_agent.config.paths import database_path
from graph_agent.config.project import PROJECT_CONFIG, Project, ProjectFile, Trust
from graph_agent.config.settings import known_keys
from graph_agent.config.sources import load_settings
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


def test_all_keys_are_explained(tmp_path: Path) -> None:
    found = explain_all({"GRAPH_AGENT_HOME": str(tmp_path)})

    assert [one.key for one in found] == [*known_keys()]
    assert all(one.description and one.allowed for one in found)


def test_the_database_of_each_layer_is_shown_without_passwords_and_a_projects_never_counts(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('database = "postgresql://ada:geheim@db/agents?password=geheim"\n')
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "GRAPH_AGENT_DB": "postgresql://bob:geheim@db/other"}
    text = 'database = "postgresql://eve:geheim@elsewhere/agents"\n'
    project = Project(tmp_path, (ProjectFile(PROJECT_CONFIG, "aa", text),), trust="trusted")

    found = explain("database", env, project, str(tmp_path / "x.db"))

    assert [(one.layer, one.value, one.speaks) for one in found.layers] == [
        ("flag", str(tmp_path / "x.db"), True),
        ("env", "postgresql://bob@db/other", True),
        ("project", "postgresql://eve@elsewhere/agents", False),
        ("user", "postgresql://ada@db/agents", True),
        ("default", str(tmp_path / "data" / "graph-agent.db"), True),
    ]
    assert (found.layer, found.origin) == ("flag", "--db")
    assert found.layers[2].ignored == "a project may not set this"
    assert load_settings(env, project=project).database == database_path(env)
    assert load_settings({"GRAPH_AGENT_HOME": str(tmp_path)}, project=project).database == database_path(
        {"GRAPH_AGENT_HOME": str(tmp_path)}
    )


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
