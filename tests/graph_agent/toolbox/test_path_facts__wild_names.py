from pathlib import Path

import pytest

from graph_agent.toolbox.facts import PolicyContext, path_fact
from policy import PolicySettings, parse_rules
from tools.base import PathTarget


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        ("read(la*/**)", "latest"),
        ("read(?a*st/new.py)", "latest"),
        ("read(all/*/src/*)", "all/one/src"),
        ("read(n*/*.py)", "names/a.py"),
        ("read(**/latest/*)", ""),
        ("read(la[t]est/*)", ""),
    ],
)
def test_a_link_that_a_rule_means_with_a_wild_sign_is_found(rule: str, other: str, tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    for folder in ("src", "all", "names"):
        (ws / folder).mkdir()
    (ws / "src/new.py").touch()
    for link, target in (("latest", "src"), ("all/one", ".."), ("names/a.py", "../src/new.py"), ("loop", "loop")):
        (ws / link).symlink_to(target)
    setting = PolicyContext(ws, PolicySettings(rules=parse_rules(deny=[rule])))

    told = path_fact(PathTarget("src/new.py"), setting).aliases

    path = other if other.endswith(".py") else f"{other}/new.py"
    assert (ws / path in told) if other else (told == ())
