"""From the grants that are stored to those that policy judges with. Knows no storage and no tool."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from graph_agent.ports import Grant, Grants, GrantScope, Scope
from graph_agent.toolbox.places import Setting
from policy import BadRule, PolicySettings, parse_rule
from policy import Grant as GrantedRules

__all__ = ["NoGrants", "granted", "with_grants"]

_log = logging.getLogger(__name__)

_WHERE: dict[GrantScope, str] = {"thread": "this thread", "project": "this project", "user": "everywhere"}


async def with_grants(setting: Setting, grants: Grants, scope: Scope) -> PolicySettings:
    """The settings with what was allowed always and holds here and now."""
    return granted(setting.policy, await grants.holding(scope.thread_id, str(setting.workspace)))


def granted(policy: PolicySettings, holding: Iterable[Grant]) -> PolicySettings:
    """The settings with these grants; one whose rules cannot be read allows nothing."""
    read = map(_read, holding)
    return replace(policy, grants=tuple(grant for grant in read if grant is not None))


def _read(grant: Grant) -> GrantedRules | None:
    try:
        rules = tuple(parse_rule(text, is_literal=True) for text in grant.rules)
    except BadRule as error:
        _log.warning("grant %s is not used: %s", grant.id, error)
        return None
    return GrantedRules(f"grant {grant.id} ({_WHERE[grant.scope]})", grant.mode, rules, grant.place)


class NoGrants:
    """Nothing was ever allowed always."""

    async def holding(self, thread_id: str, workspace: str) -> list[Grant]:  # noqa: ARG002 - port
        """None."""
        return []

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:  # noqa: ARG002 - port
        """None to take back."""
        return None
