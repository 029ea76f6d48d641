from pathlib import Path

import pytest

from graph_agent.toolbox.facts import PolicyContext, path_fact
from policy import PathFact, PolicySettings, parse_rules
from tools.base import PathTarget


def test_a_path_is_told_with_where_it_leads_and_whose_it_is(tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    (ws / "link").symlink_to("own")
    setting = PolicyContext(ws / "w", PolicySettings(reserved=(ws / "own",)))

    fact = path_fact(PathTarget("link/x"), setting, base=ws)

    assert fact == PathFact("link/x", ws / "own/x", "read", inside=False, reserved=True)


def test_a_further_folder_counts_as_inside_and_relative_paths_start_at_the_workspace_all_the_same(
    tmp_path: Path,
) -> None:
    root = tmp_path.resolve()
    (root / "lib").mkdir()
    setting = PolicyContext(root / "w", PolicySettings(), (root / "lib",))

    given = (str(root / "lib" / "x"), "../lib/x", "../lib-evil/x", "x")
    assert [path_fact(PathTarget(text), setting).inside for text in given] == [True, True, False, True]


@pytest.mark.parametrize(("rule", "aliases"), [("read(secret)", ("secret",)), ("ask", ()), ("read(sec*)", ())])
def test_other_names_of_a_file_that_rules_name_are_told(
    rule: str, aliases: tuple[str, ...], tmp_path: Path
) -> None:
    ws = tmp_path.resolve()
    (ws / "secret").write_text("x")
    (ws / "twin").hardlink_to(ws / "secret")
    setting = PolicyContext(ws, PolicySettings(rules=parse_rules(deny=[rule])))

    assert path_fact(PathTarget("twin"), setting).aliases == tuple(ws / name for name in aliases)
    assert path_fact(PathTarget("secret"), setting).aliases == ()
    assert path_fact(PathTarget("new"), setting).aliases == ()


@pytest.mark.parametrize(
    "rule",
    ["read(link/**)", "ask(x)", "read(link/)", "read(link/*.py)", "read(sub/../link/**)", "read(../ws/link/*)"],
)
def test_what_rules_name_by_way_of_a_link_has_that_name_too(rule: str, tmp_path: Path) -> None:
    ws = tmp_path.resolve() / "ws"
    (ws / "src").mkdir(parents=True)
    (ws / "link").symlink_to("src")
    setting = PolicyContext(ws, PolicySettings(rules=parse_rules(deny=[rule])))

    told = path_fact(PathTarget("src/new.py"), setting).aliases

    assert told == (() if rule == "ask(x)" else (ws / "link/new.py",))
    assert path_fact(PathTarget("other/new.py"), setting).aliases == ()
