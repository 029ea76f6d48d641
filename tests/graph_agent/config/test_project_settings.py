from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.project import PROJECT_CONFIG, Project, ProjectFile, Trust
from graph_agent.config.settings import known_keys
from graph_agent.config.sources import IgnoredValue, Sourced, load_settings, project_settings
from graph_agent.errors import ConfigError

_PLACE = f"/p/{PROJECT_CONFIG}"


def _project(text: str, trust: Trust = "trusted") -> Project:
    return Project(Path("/p"), (ProjectFile(PROJECT_CONFIG, "aa", text),), trust=trust)


def _loaded(folder: Path, own: str, text: str, trust: Trust = "trusted") -> Any:
    (folder / "config.toml").write_text(own)
    return load_settings({"GRAPH_AGENT_HOME": str(folder)}, project=_project(text, trust))


@pytest.mark.parametrize(
    ("key", "own", "wanted", "counts"),
    [
        ("mode", "default", "plan", True),
        ("mode", "default", "dontAsk", True),
        ("mode", "acceptEdits", "default", True),
        ("mode", "default", "acceptEdits", False),
        ("mode", "default", "bypassPermissions", False),
        ("mode", "plan", "default", False),
        ("mode", "plan", "dontAsk", False),
        ("mode", "dontAsk", "plan", False),
        ("mode", "default", "default", False),
        ("mode", "default", "nonsense", False),
        ("mode", "default", 3, False),
        ("max_steps", 9, 4, True),
        ("max_steps", 9, 9, False),
        ("max_steps", "many", 4, False),
        ("max_steps", 9, "4", False),
    ],
)
def test_a_value_of_a_project_counts_only_if_it_is_stricter(key: str, own: Any, wanted: Any, counts: bool) -> None:
    layer = project_settings(_project(f"{key} = {wanted!r}"), {key: Sourced(own, "own")})

    assert (key in layer.values, key in layer.ignored) == (counts, not counts)


def test_only_keys_that_are_added_chosen_or_made_stricter_count() -> None:
    values = {"mode": '"plan"', "max_steps": "3", "model.name": '"m"', "mcp_servers.x": '{command = "c"}'}
    lists = {f"policy.{name}": '["bash(x)"]' for name in ("allow", "ask", "deny")}
    when = (
        *("session_start", "user_prompt", "before_tool", "after_tool", "turn_end", "before_call", "approval"),
        *("on_waiting", "on_finished", "on_error"),
    )
    lists |= {f"hooks.{name}": '[{command = "c"}]' for name in when}
    text = "".join(
        f"{key} = {values.get(key, '1')}\n" for key in known_keys() if key not in lists | {"mcp_servers": ""}
    )
    text = "\n".join(sorted(text.splitlines(), key=lambda line: "." in line))
    text += (
        "".join(f"\n{key} = {value}" for key, value in lists.items()) + '\nmcp_servers.x = {command = "c"}\nzz = 1'
    )

    layer = project_settings(_project(text), {})

    assert {*layer.values, *layer.ignored} == {*known_keys(), "zz"}
    assert {*layer.values} - {"sandbox", "sandbox_network"} == {
        *("max_tokens", "max_cost", "max_thread_tokens", "max_thread_cost"),
        "mode",
        "max_steps",
        "max_task_depth",
        "model.name",
        "mcp_servers",
        "tools",
        *lists,
    }
    assert layer.ignored["model.base_url"] == IgnoredValue(1, "a project may not set this")
    assert layer.ignored["zz"] == IgnoredValue(1, "unknown setting")


def test_rules_and_servers_are_added_to_the_users_own_and_each_says_whence_it_is(tmp_path: Path) -> None:
    settings = _loaded(
        tmp_path,
        '[policy]\ndeny = ["bash(rm *)"]\n[mcp_servers.mine]\ncommand = "a"\n',
        '[policy]\ndeny = ["bash(rm *)", "bash(dd *)"]\n[mcp_servers.mine]\ncommand = "evil"\n'
        '[mcp_servers.theirs]\ncommand = "b"\n',
    )

    assert settings.policy.deny == ("bash(rm *)", "bash(dd *)")
    assert {name: server.command for name, server in settings.mcp_servers.items()} == {"theirs": "b", "mine": "a"}
    assert settings.origins == {
        "policy.deny": str(tmp_path / "config.toml"),
        "mcp_servers": str(tmp_path / "config.toml"),
        "policy.deny.bash(dd *)": _PLACE,
        "policy.deny.bash(rm *)": _PLACE,
        "mcp_servers.theirs": _PLACE,
    }


@pytest.mark.parametrize(("risk", "counts"), [("low", False), ("medium", False), ("high", True)])
def test_a_project_only_raises_the_risk_of_its_servers(risk: str, counts: bool) -> None:
    layer = project_settings(_project(f'[mcp_servers.x]\ncommand = "c"\nrisk = "{risk}"'), {})

    expected = {"risk": risk} if counts else {}
    assert layer.values["mcp_servers"].value == {"x": {"command": "c", **expected}}
    assert {key: found.value for key, found in layer.ignored.items()} == (
        {} if counts else {"mcp_servers.x.risk": risk}
    )


def test_a_flag_and_the_environment_go_before_a_project(tmp_path: Path) -> None:
    env = {"GRAPH_AGENT_HOME": str(tmp_path), "GRAPH_AGENT_MODE": "default"}

    settings = load_settings(env, flags={"max_steps": 9}, project=_project('mode = "plan"\nmax_steps = 4'))

    assert (settings.mode, settings.max_steps) == ("default", 9)


@pytest.mark.parametrize("trust", ["none", "untrusted", "changed", "declined"])
def test_nothing_of_an_untrusted_folder_counts_not_even_its_mistakes(tmp_path: Path, trust: Trust) -> None:
    text = 'mode = "plan"\nmax_steps = "many"\n[policy]\ndeny = ["bash(*)"]\nallow = ["bash(*)"]\n'

    assert _loaded(tmp_path, "", text, trust) == _loaded(tmp_path, "", "", trust)
    assert _loaded(tmp_path, "", "= no toml", trust) == _loaded(tmp_path, "", "", trust)
    assert _loaded(tmp_path, "", "x = " + "[" * 50_000, trust) == _loaded(tmp_path, "", "", trust)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= no toml", f"{_PLACE} is not valid TOML"),
        ("x = " + "[" * 50_000, "nested too deeply"),
        ('[policy]\nallow = "bash(*)"', f"{_PLACE}: policy.allow = 'bash"),
        ("[mcp_servers.x]\ncommand = 3", f"{_PLACE}: mcp_servers.x.command"),
    ],
)
def test_a_mistake_of_a_trusted_folder_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _loaded(tmp_path, '[policy]\nallow = ["ls"]\n', text)

    assert message in str(caught.value)


def test_only_what_is_added_has_places_of_its_own(tmp_path: Path) -> None:
    text = 'mode = "plan"\n[policy]\nask = ["a", {rule = "b", match = []}]\n'

    settings = _loaded(tmp_path, 'mode = "default"', text)

    places = dict.fromkeys(("mode", "policy.ask", "policy.ask.a", "policy.ask.b"), _PLACE)
    assert (settings.mode, settings.origins) == ("plan", places)
