from pathlib import Path, PurePath

import pytest

from graph_agent.toolbox.call_preparation import allowed_paths
from policy import CallFacts, PathFact, PolicySettings, parse_rules
from tools.paths import PathRefused

_INSIDE = PathFact("x", PurePath("/ws/x"), "read", inside=True)
_OUTSIDE = PathFact("x", PurePath("/out/x"), "read", inside=False)


def _facts(path: PathFact) -> CallFacts:
    return CallFacts("read_file", "default", "low", "readonly", PurePath("/ws"), paths=(path,))


@pytest.mark.parametrize(
    ("path", "judged"), [(_OUTSIDE, ["/out/x"]), (_OUTSIDE, None), (_INSIDE, ["/ws/x"]), (_INSIDE, ["/ws/old"])]
)
def test_a_call_may_open_what_it_was_judged_by_or_what_is_allowed_unasked(
    path: PathFact, judged: list[str] | None
) -> None:
    assert allowed_paths(_facts(path), judged, PolicySettings()) == {Path(path.resolved)}


@pytest.mark.parametrize("deny", [[], ["read(/out/**)"]])
def test_what_leads_to_where_the_call_may_not_go_unasked_is_refused(deny: list[str]) -> None:
    settings = PolicySettings(rules=parse_rules(deny=deny))

    with pytest.raises(PathRefused, match="'x' leads to '/out/x' now, and led elsewhere when the call"):
        allowed_paths(_facts(_OUTSIDE), ["/ws/x"], settings)


def test_what_leads_to_a_denied_file_of_the_workspace_by_now_is_refused() -> None:
    settings = PolicySettings(rules=parse_rules(deny=["read(x)"]))

    with pytest.raises(PathRefused):
        allowed_paths(_facts(_INSIDE), ["/ws/y"], settings)
