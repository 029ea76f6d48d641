from pathlib import Path

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, host_permission
from policy import PolicySettings, parse_rules
from tools.base import HostPermission


def test_a_host_met_on_the_way_is_judged_by_rules_and_mode() -> None:
    rules = parse_rules(allow=["web_fetch(docs.python.org)"], deny=["web_fetch(evil.example)"])
    setting = PolicyContext(Path("/w"), PolicySettings(rules=rules))

    leaves = {
        host: host_permission(host, Scope("t", "default"), setting)
        for host in ("docs.python.org", "evil.example", "127.0.0.1:8000")
    }

    assert leaves == {
        "docs.python.org": HostPermission(may_follow=True, may_be_private=True),
        "evil.example": HostPermission(is_denied=True),
        "127.0.0.1:8000": HostPermission(),
    }
