"""The rules that "always" would store for one call: no wider than what was shown, or none at all, with the reason.

Whatever is proposed is tried first: judged with these rules, the very same call must be allowed.
"""

import re
import shlex
from dataclasses import replace
from posixpath import basename
from typing import NamedTuple

from policy.chain import evaluate
from policy.facts import CallFacts, PolicySettings
from policy.rules import Grant, InvalidRule, parse_rule
from policy.shell.commands import without_assignments
from policy.shell.shell_text import ShellText

__all__ = ["Proposal", "propose"]

_RUNS_OTHERS = re.compile(
    r"""
    # interpreters
    (ba|da|z|k|a|fi|c|tc)?sh | su | python[\d.]* | pypy[\d.]* | perl[\d.]* | ruby[\d.]* | node | nodejs | deno | bun
    | php[\d.]* | lua[\d.]* | luajit | tclsh | expect | osascript | pwsh | powershell | R | Rscript | julia | ghci
    | [gmn]?awk | sed | ed | ex | vim? | emacs | irb | psql | mysql | sqlite3 | gdb | m4 | dc | bc | jshell | groovy
    # wrappers, and what runs a command or a text it is given
    | sudo | doas | runuser | pkexec | env | xargs | parallel | find | fd | timeout | g?time | nohup | nice | ionice
    | setsid | stdbuf | chroot | chrt | taskset | unshare | nsenter | firejail | bwrap | flock | script | strace
    | ltrace | watch | busybox | toybox | command | builtin | exec | eval | source | \. | trap | coproc | ssh
    | docker | podman | kubectl | npx | bunx | pnpx | uvx | pipx | entr | setarch | systemd-run | at | batch
    """,
    re.VERBOSE,
)
"""Programs that run what their arguments, or a file that may change, say."""


class Proposal(NamedTuple):
    """What "always" would store."""

    rules: tuple[str, ...] = ()
    """Exact rules, all of them needed; empty when there is nothing to propose."""
    objection: str = ""
    """Why there is nothing to propose, as a sentence."""


def propose(facts: CallFacts, settings: PolicySettings, suggestion: str) -> Proposal:
    """The narrowest rules by which this very call would run unasked in this mode.

    Args:
        facts: the call.
        settings: what it is judged by now.
        suggestion: the rule the tool itself suggests, for a call that names neither a command nor a path.
    """
    found = _of_command(facts.tool, facts.shell) if facts.shell is not None else _of_call(facts, suggestion)
    if found.objection:
        return found
    try:
        rules = tuple(parse_rule(text, is_literal=True) for text in found.rules)
    except InvalidRule as error:
        return Proposal(objection=f"No rule can be made of it: {error}.")
    grant = Grant("the answer", facts.mode, rules, facts.place)
    decision = evaluate(facts, replace(settings, grants=(*settings.grants, grant)))
    if decision.verdict != "allow":
        return Proposal(objection=f"It would be asked about all the same. {decision.reason}")
    return found


def _of_command(tool: str, text: ShellText) -> Proposal:
    if text.unclear_reason or not text.commands:
        return Proposal(
            objection=f"No rule can allow this command: {text.unclear_reason or 'there is none in it'}."
        )
    if text.written:
        return Proposal(objection="A rule for a command that writes a file would also let it write any other.")
    if any(simple.patterns for simple in text.commands):
        return Proposal(objection="What a pattern of file names stands for changes with the files there are.")
    for simple in text.commands:
        words = without_assignments(simple.words)
        if words and _RUNS_OTHERS.fullmatch(basename(words[0])):
            return Proposal(
                objection=f"{words[0]} runs what it is told to: a rule would allow more than was shown."
            )
    rules = dict.fromkeys(f"{tool}({shlex.join(simple.words)})" for simple in text.commands)
    return Proposal(tuple(rules))


def _of_call(facts: CallFacts, suggestion: str) -> Proposal:
    if not facts.paths:
        return Proposal((suggestion,))
    return Proposal(tuple(dict.fromkeys(f"{facts.tool}({path.resolved})" for path in facts.paths)))
