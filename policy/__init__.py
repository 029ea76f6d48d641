"""Who may do what: facts about a call in, a decision out. Pure: no tools, graphs, models, terminals, databases."""

from policy.chain import CHAIN_STEPS, is_reserved, judge, reach_of
from policy.facts import MODES, CallFacts, Decision, Mode, PathFact, PolicySettings, Verdict
from policy.matching import covers, filters_files, hidden_tools, may_read, named_folders, named_paths
from policy.proposals import Proposal, propose
from policy.protected import PLACED_IN_PROJECTS, PROTECTED_FILES, PROTECTED_FOLDERS, is_protected
from policy.risk import DEFAULT_TOOL_RISK, DEFAULT_UNKNOWN_RISK, Risk, risk_of
from policy.rules import ARGUMENT_ALIASES, BadRule, Grant, Rule, Rules, parse_rule, parse_rules, tool_named
from policy.shell.effects import Parser, ShellText, SimpleCommand, Unparsable, read_shell, unread

__all__ = [
    "ARGUMENT_ALIASES",
    "CHAIN_STEPS",
    "DEFAULT_TOOL_RISK",
    "DEFAULT_UNKNOWN_RISK",
    "MODES",
    "PLACED_IN_PROJECTS",
    "PROTECTED_FILES",
    "PROTECTED_FOLDERS",
    "BadRule",
    "CallFacts",
    "Decision",
    "Grant",
    "Mode",
    "Parser",
    "PathFact",
    "PolicySettings",
    "Proposal",
    "Risk",
    "Rule",
    "Rules",
    "ShellText",
    "SimpleCommand",
    "Unparsable",
    "Verdict",
    "covers",
    "filters_files",
    "hidden_tools",
    "is_protected",
    "is_reserved",
    "judge",
    "may_read",
    "named_folders",
    "named_paths",
    "parse_rule",
    "parse_rules",
    "propose",
    "reach_of",
    "read_shell",
    "risk_of",
    "tool_named",
    "unread",
]
