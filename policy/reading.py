"""What a deny rule about reading hides from tools that look through many files."""

from pathlib import PurePath

from policy.facts import CallFacts, PathFact, PolicySettings
from policy.matching import covers_tool, touches
from policy.rules import Rules

__all__ = ["hides_files", "may_read"]


def hides_files(rules: Rules) -> bool:
    """Whether any rule could hide a file; where none does, nobody need ask about each."""
    return any(rule.pattern is not None and covers_tool(rule, "read_file") for rule in rules.deny)


def may_read(path: PurePath, *, workspace: PurePath, rules: Rules, home: PurePath | None = None) -> bool:
    """Whether no `deny read_file(PATH)` covers a resolved path.

    A rule without a path takes the tool read_file away and says nothing about files.
    """
    facts = CallFacts(
        "read_file",
        "default",
        "low",
        "readonly",
        workspace,
        paths=(PathFact(str(path), path, "read", inside=True),),
    )
    settings = PolicySettings(rules=rules, home=home)
    return not any(rule.pattern is not None and touches(rule, facts, settings, None) for rule in rules.deny)
