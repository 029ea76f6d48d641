"""Who may do what: facts about a call in, a decision out. Pure: no tools, graphs, models, terminals, databases."""

from policy.chain import judge
from policy.facts import MODES, CallFacts, Decision, Mode, PathFact, PolicySettings, Verdict
from policy.grants import Grant
from policy.matching import hidden_tools
from policy.proposing import Proposal, propose
from policy.protected import is_protected
from policy.reading import may_read
from policy.reserved import is_reserved
from policy.risk import DEFAULT_TOOL_RISK, DEFAULT_UNKNOWN_RISK, Risk, risk_of
from policy.rules import BadRule, Rule, Rules, parse_rule, parse_rules

__all__ = [
    "DEFAULT_TOOL_RISK",
    "DEFAULT_UNKNOWN_RISK",
    "MODES",
    "BadRule",
    "CallFacts",
    "Decision",
    "Grant",
    "Mode",
    "PathFact",
    "PolicySettings",
    "Proposal",
    "Risk",
    "Rule",
    "Rules",
    "Verdict",
    "hidden_tools",
    "is_protected",
    "is_reserved",
    "judge",
    "may_read",
    "parse_rule",
    "parse_rules",
    "propose",
    "risk_of",
]
