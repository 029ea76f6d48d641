from pathlib import Path

import pytest

from graph_agent.toolbox.facts import PolicyContext, command_facts
from policy import PathFact, PolicySettings, parse_rules
from tools.base import CommandTarget
from tools.paths import PathRefused


def _setting(ws: Path) -> PolicyContext:
    return PolicyContext(ws, PolicySettings())


def test_redirections_are_resolved_through_links_from_where_the_command_may_be(tmp_path: Path) -> None:
    ws = tmp_path.resolve() / "ws"
    (ws / "sub").mkdir(parents=True)
    (ws / "out").symlink_to(tmp_path.resolve())

    read = command_facts(CommandTarget("cd out && a > x", "."), ws / "sub", _setting(ws))

    assert read.cwd == ws
    assert read.redirects == (
        PathFact("x", ws / "x", "write", inside=True),
        PathFact("out/x", ws.parent / "x", "write", inside=False),
    )


def test_a_target_that_cannot_be_resolved_is_outside(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    redirects = command_facts(CommandTarget("a > loop"), tmp_path, _setting(tmp_path)).redirects

    assert [path.inside for path in redirects] == [False]


def test_a_redirection_into_a_file_that_has_another_name_is_outside(tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    (ws / "a").write_text("x")
    (ws / "b").hardlink_to(ws / "a")
    (ws / "c").write_text("x")

    redirects = command_facts(CommandTarget("x > a; x > c; x > new"), ws, _setting(ws)).redirects

    assert [(path.given, path.inside) for path in redirects] == [("a", False), ("c", True), ("new", True)]


def test_a_word_that_is_another_name_of_a_file_a_rule_names_mentions_that_file(tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    (ws / ".env").write_text("x")
    (ws / "twin").hardlink_to(ws / ".env")
    setting = PolicyContext(ws, PolicySettings(rules=parse_rules(deny=["read(.env)"])))

    assert ws / ".env" in command_facts(CommandTarget("cat twin"), ws, setting).mentions


@pytest.mark.parametrize("command", ["cat link", "cat --file=link", "curl -d @link", "grep -flink x", "cat < link"])
def test_words_are_followed_as_paths(command: str, tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    (ws / "link").symlink_to(".env")

    assert ws / ".env" in command_facts(CommandTarget(command), ws, _setting(ws)).mentions


def test_a_folder_that_cannot_be_resolved_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PathRefused):
        command_facts(CommandTarget("a", "x\0y"), tmp_path, _setting(tmp_path))
