"""Which calls may run: facts about a call in, a decision out."""

from policy.chain import CHAIN_STEPS, evaluate, host_access, is_reserved
from policy.facts import (
    DEFAULT_TOOL_RISK,
    DEFAULT_UNKNOWN_RISK,
    MODES,
    CallFacts,
    Decision,
    Mode,
    PathFact,
    PolicySettings,
    Risk,
    Verdict,
    risk_of,
)
from policy.matching import exact_rule_paths, filters_files, hidden_tools, may_read, rule_covers, rule_folders
from policy.proposals import Proposal, propose
from policy.protected import PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_IN_PROJECTS, is_protected
from policy.rules import (
    ARGUMENT_ALIASES,
    Grant,
    InvalidRule,
    Rule,
    Rules,
    canonical_tool_name,
    parse_rule,
    parse_rules,
)
from policy.shell.shell_text import Parser, ShellText, SimpleCommand, Unparsable, parse_shell, unparsed_shell

__all__ = [
    "ARGUMENT_ALIASES",
    "CHAIN_STEPS",
    "DEFAULT_TOOL_RISK",
    "DEFAULT_UNKNOWN_RISK",
    "MODES",
    "PROTECTED_FILES",
    "PROTECTED_FOLDERS",
    "PROTECTED_IN_PROJECTS",
    "CallFacts",
    "Decision",
    "Grant",
    "InvalidRule",
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
    "canonical_tool_name",
    "evaluate",
    "exact_rule_paths",
    "filters_files",
    "hidden_tools",
    "host_access",
    "is_protected",
    "is_reserved",
    "may_read",
    "parse_rule",
    "parse_rules",
    "parse_shell",
    "propose",
    "risk_of",
    "rule_covers",
    "rule_folders",
    "unparsed_shell",
]
