"""What a tool that fetches is told of a host while it runs: redirections meet hosts that no call was judged for."""

from graph_agent.ports import Scope
from graph_agent.toolbox.places import Setting
from policy import CallFacts, reach_of
from tools.base import HostLeave

__all__ = ["host_leave"]


def host_leave(host: str, scope: Scope, setting: Setting) -> HostLeave:
    """What the rules say; what was allowed "always" counts for calls alone, not for where they lead."""
    facts = CallFacts(
        tool="web_fetch",
        mode=scope.mode,
        risk="medium",
        kind="readonly",
        workspace=setting.workspace,
        plans=True,
        hosts=(host,),
    )
    reach = reach_of(facts, setting.policy)
    return HostLeave(is_denied=reach.is_denied, may_follow=reach.is_allowed, may_be_private=reach.is_named)
