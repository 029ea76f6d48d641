"""The rules that "always" and "always deny" would store for one call: for it alone, or for all that begin the same.

Proposed rules are tried first: evaluated with them, the same call must be allowed, or denied. What they cover
beyond the call is said in words that are made from the rule.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from posixpath import basename, normpath
from typing import Literal, NamedTuple

from policy.chain import evaluate
from policy.facts import CallFacts, PolicySettings
from policy.matching import command_folders, unclear_reason
from policy.rules import Grant, InvalidRule, Rule, denied_rules, granted_rules, parse_rule
from policy.shell.arguments import dangerous_options, offered_prefix, only_reads, read_command
from policy.shell.commands import guess_commands, without_assignments, wrapped_commands
from policy.shell.program_table import program_named, subcommand_named
from policy.shell.programs import Program, WrapperSyntax
from policy.shell.shell_text import ShellText
from policy.shell.words import SimpleCommand

__all__ = ["COVERAGE", "DENIAL_COVERAGE", "PrefixProposal", "Proposal", "RuleKind", "propose", "propose_denial"]

RuleKind = Literal["tool", "command", "prefix", "host", "change", "path", "subject"]
"""What a stored rule is about: each kind allows something else beyond the call that it was made from."""

COVERAGE: Mapping[RuleKind, str] = {
    "tool": "This allows every call of the tool, whatever its arguments.",
    "command": "This allows exactly these words{place}{rest}",
    "prefix": (
        "This allows {commands} with any arguments{place}, except options that are not known to be harmless."
    ),
    "host": "This allows every address on this host.",
    "change": "This allows every change that {tool} makes to this file, not only this one.",
    "path": "This allows every {tool} of this path, whatever its other arguments are.",
    "subject": "This allows every call with this subject, whatever its other arguments are.",
}
"""For each kind of rule the sentence that the user consents to."""
DENIAL_COVERAGE: Mapping[RuleKind, str] = {
    "tool": "This denies every call of the tool, whatever its arguments.",
    "command": "This denies exactly these words in every folder, also as part of a longer command.",
    "prefix": "This denies {commands} with any arguments in every folder, also as part of a longer command.",
    "host": "This denies every address on this host, for every tool.",
    "change": "This denies every change of this file, by any tool.",
    "path": "This denies reading this path, by any tool.",
    "subject": "This denies every call with this subject, whatever its other arguments are.",
}
"""The same for the rules of "always deny", which hold in every mode."""


_AS_SHOWN = ", each in the folders shown with it"
_Folders = tuple[tuple[str, ...], ...]


class PrefixProposal(NamedTuple):
    """The wider rules for a command: programs and sub-commands with any arguments."""

    rules: tuple[str, ...]
    """All of them needed; a simple command of which no beginning is offered has its exact rule."""
    prefixes: tuple[str, ...]
    """Those of the rules that end with ` *` for any arguments."""
    coverage: str
    folders: _Folders = ()
    """See `Proposal.folders`."""


class Proposal(NamedTuple):
    """What "always" would store."""

    rules: tuple[str, ...] = ()
    """Exact rules, all of them needed; empty when there is nothing to propose."""
    objection: str = ""
    """Why there is nothing to propose, as a sentence."""
    coverage: str = ""
    """What the rules allow, also beyond the call, as a sentence."""
    folders: _Folders = ()
    """For each rule the folders in which its command works, as in `Rule.folders`; empty for other calls, and if all
    of them work where the call starts."""
    prefix: PrefixProposal | None = None
    """The wider choice; None where no beginning of the command is one that may have any arguments."""


def propose(facts: CallFacts, settings: PolicySettings, suggestion: str) -> Proposal:
    """The narrowest rules by which this very call would run without asking in this mode, and wider ones.

    Args:
        facts: the call.
        settings: the settings it is evaluated with now.
        suggestion: the rule that the tool itself suggests, for a call that names neither a command nor a path.
    """
    exact = _exact(facts, suggestion)
    if not exact.objection:
        exact = _with_coverage(exact, facts, settings)
    prefix = _prefix(facts, facts.shell) if facts.shell is not None else None
    if prefix is not None and _objection(prefix.rules, prefix.folders, prefix.prefixes, facts, settings):
        prefix = None
    return exact._replace(prefix=prefix)


def propose_denial(facts: CallFacts, settings: PolicySettings, suggestion: str) -> Proposal:
    """The narrowest rules by which this very call would be denied, and wider ones; see `propose`."""
    words: tuple[str, ...] = ()
    if facts.shell is not None:
        commands = {simple.text: simple.words for simple in facts.shell.commands}
        if len(commands) != 1:
            return Proposal(objection=_NOT_ONE_COMMAND)
        [(text, words)] = commands.items()
        proposal = Proposal((f"{facts.tool}({text})",))
    elif facts.paths:
        written = [path for path in facts.paths if path.access != "read"]
        access = "write_file" if written else "read_file"
        proposal = Proposal(tuple(dict.fromkeys(f"{access}({path.resolved})" for path in written or facts.paths)))
    else:
        proposal = Proposal((suggestion,))
    if objection := _denial_objection(proposal.rules, (), facts, settings):
        return Proposal(objection=objection)
    kind = _kind(parse_rule(proposal.rules[0], is_literal=True), facts)
    prefix = _denied_prefix(facts.tool, without_assignments(words))
    if prefix is not None and _denial_objection(prefix.rules, prefix.prefixes, facts, settings):
        prefix = None
    return proposal._replace(coverage=DENIAL_COVERAGE[kind], prefix=prefix)


_NOT_ONE_COMMAND = (
    "A rule denies one command wherever it occurs. Add the one that you mean to `deny` in [policy] of the config."
)


def _denial_objection(
    rules: Sequence[str], prefixes: Sequence[str], facts: CallFacts, settings: PolicySettings
) -> str:
    """Why these rules would not deny the call; empty if they would."""
    try:
        denied = denied_rules(rules, prefixes, "the answer")
    except InvalidRule as error:
        return f"It cannot be written as a rule: {error}."
    lists = replace(settings.rules, deny=(*settings.rules.deny, *denied))
    decision = evaluate(facts, replace(settings, rules=lists))
    return "" if decision.verdict == "deny" else f"A rule would not deny it. {decision.reason}"


def _denied_prefix(tool: str, words: Sequence[str]) -> PrefixProposal | None:
    """A rule for the program, or for its sub-command where the table of programs has a row for that."""
    if not words:
        return None
    has_subcommand = len(words) > 1 and subcommand_named(words[0], words[1]) is not None
    beginning = shlex.join(words[: 2 if has_subcommand else 1])
    rule = f"{tool}({beginning} *)"
    return PrefixProposal((rule,), (rule,), DENIAL_COVERAGE["prefix"].format(commands=beginning))


def _exact(facts: CallFacts, suggestion: str) -> Proposal:
    if facts.shell is not None:
        return _for_command(facts, facts.shell)
    if facts.paths:
        return Proposal(tuple(dict.fromkeys(f"{facts.tool}({path.resolved})" for path in facts.paths)))
    return Proposal((suggestion,))


def _with_coverage(proposal: Proposal, facts: CallFacts, settings: PolicySettings) -> Proposal:
    """The proposal with what it covers; the objection alone where its rules would not let the call run."""
    if objection := _objection(proposal.rules, proposal.folders, (), facts, settings):
        return Proposal(objection=objection)
    kind = _kind(parse_rule(proposal.rules[0], is_literal=True), facts)
    changing = _what_may_change(facts.shell) if kind == "command" and facts.shell is not None else ""
    rest = f".{changing}" if changing else ", and nothing else."
    place = _place(facts, proposal.folders)
    return proposal._replace(coverage=COVERAGE[kind].format(tool=facts.tool, place=place, rest=rest))


def _objection(
    rules: Sequence[str], folders: _Folders, prefixes: Sequence[str], facts: CallFacts, settings: PolicySettings
) -> str:
    """Why these rules would not let the call run unasked; empty if they would."""
    try:
        parsed = granted_rules(rules, folders, facts.folder, prefixes)
    except InvalidRule as error:
        return f"It cannot be written as a rule: {error}."
    grant = Grant("the answer", facts.mode, parsed)
    decision = evaluate(facts, replace(settings, grants=(*settings.grants, grant)))
    return "" if decision.verdict == "allow" else f"A rule would not stop it from asking. {decision.reason}"


def _kind(rule: Rule, facts: CallFacts) -> RuleKind:
    if rule.pattern is None:
        return "tool"
    if facts.shell is not None:
        return "command" if rule.is_literal else "prefix"
    if facts.hosts:
        return "host"
    if facts.paths:
        return "change" if any(path.access != "read" for path in facts.paths) else "path"
    return "subject"


def _for_command(facts: CallFacts, text: ShellText) -> Proposal:
    if objection := _unclear(facts, text):
        return Proposal(objection=objection)
    if any(simple.patterns for simple in text.commands):
        return Proposal(objection="No rule can allow it, because the files that a pattern matches may change.")
    for simple in text.commands:
        if objection := _exact_objection(simple.words):
            return Proposal(objection=objection)
    rules, folders = _by_folder([_exact_rule(facts.tool, simple) for simple in text.commands], facts, text)
    return Proposal(rules, folders=folders)


def _by_folder(rules: Sequence[str], facts: CallFacts, text: ShellText) -> tuple[tuple[str, ...], _Folders]:
    """The rules for the simple commands, each once for the same folders, and these; see `Proposal.folders`."""
    places = (tuple(sorted(command_folders(simple, facts))) for simple in text.commands)
    placed = dict.fromkeys(zip(rules, places, strict=True))
    folders = tuple(place for _, place in placed)
    is_at_start = set(folders) == {(facts.folder,)}
    return tuple(rule for rule, _ in placed), () if is_at_start else folders


def _unclear(facts: CallFacts, text: ShellText) -> str:
    if (reason := unclear_reason(facts, text)) or not text.commands:
        return f"No rule can allow this command: {reason or 'it is empty'}."
    return "A rule for a command that writes a file would also let it write any other." if text.written else ""


def _exact_rule(tool: str, simple: SimpleCommand) -> str:
    return f"{tool}({shlex.join(simple.words)})"


def _prefix(facts: CallFacts, text: ShellText) -> PrefixProposal | None:
    """A rule for every simple command: its beginning where one is offered, else its words."""
    if _unclear(facts, text):
        return None
    rules: list[str] = []
    beginnings: dict[str, str] = {}
    exact: list[str] = []
    for simple in text.commands:
        if words := offered_prefix(simple.words):
            rules.append(f"{facts.tool}({' '.join(words)} *)")
            beginnings[rules[-1]] = " ".join(words)
        elif simple.patterns or _exact_objection(simple.words):
            return None
        else:
            rules.append(_exact_rule(facts.tool, simple))
            exact.append(shlex.join(simple.words))
    if not beginnings:
        return None
    placed, folders = _by_folder(rules, facts, text)
    commands = _enumerated(beginnings.values())
    coverage = COVERAGE["prefix"].format(commands=commands, place=_place(facts, folders))
    if exact:
        coverage += f" It also allows, exactly as written: {', '.join(dict.fromkeys(exact))}."
    return PrefixProposal(placed, tuple(beginnings), coverage + _what_may_change(text), folders)


def _place(facts: CallFacts, folders: _Folders) -> str:
    """Where commands are allowed: where the call starts, or in other folders, which the rules name.

    Which workspaces are meant is a matter of the scope, which is chosen later.
    """
    if folders:
        return _AS_SHOWN
    return " in the top folder of the workspace" if facts.folder == "." else f" in {facts.folder}"


def _enumerated(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


# What a rule for exactly the words of a command leaves open

_MAX_DEPTH = 8
_FROM_INPUT = "{} takes, or may take, its code from its input: a rule for these words would allow any code."
_ARGUMENTS_FROM_INPUT = "{} takes arguments from its input: a rule for these words would allow any of them."
_FINDS = "What {} finds may change: a rule for these words would allow the same for any other file."
_COMPUTED = "What {} runs is computed when it runs: a rule for these words would allow more than was shown."
_ELSEWHERE = "{} runs its command as another user, on another machine or in a container: no rule is saved for that."
_APPENDS_INPUT = frozenset(("parallel", "xargs"))
_READS_INPUT = frozenset(("R", "at", "batch", "erl", "ghci", "iex", "irb", "jshell", "pry", "sbcl", "swipl"))
"""Programs that take code from their input whatever their arguments are."""
_OPENS_SHELL = frozenset(("chroot", "newgrp", "nix-shell", "nsenter", "screen", "setarch", "sg", "tmux"))
"""Programs that start a shell, which reads its input, unless a command follows, which their words may not tell."""
_OPENS_SHELL_ALONE = frozenset(("fakeroot", "linux32", "linux64", "unshare"))
"""The same, but a first word that is no option is the command."""
_SHELL_COMMANDS = frozenset(("develop", "shell"))
"""Commands of package managers that do the same: `poetry shell`, `nix develop`."""
_PACKAGE_RUNNERS = frozenset(("npm", "npx", "pnpm", "yarn"))
_OTHER_LANGUAGES = frozenset(
    (
        *("bpython", "clj", "clojure", "coffee", "elvish", "guile", "ipython", "kotlin", "ocaml", "octave"),
        *("ptpython", "racket", "runghc", "scala", "swift", "ts-node", "tsx", "utop", "xonsh"),
    )
)
"""Interpreters that the table of programs does not know: without a script they read their input."""
_INTERACTIVE = frozenset(("-", "asyncio", "code", "pdb", "repl"))
"""Arguments with which an interpreter takes code from its input."""
_INTERACTIVE_MODULES = frozenset(("IPython", "bpython", "idlelib", "ptpython", "sqlite3", "xonsh"))
_INPUT_FILE = re.compile(r"(?:.*[/=])?(?:dev/(?:stdin|fd/.*|tty.*|pts/.*)|proc/.*/fd/.*)|-[a-zA-Z]-|--[\w-]+=-")
_EXPANSION = re.compile(r"[$`*?\[~<>]")
"""What may let the same shell code run something else another time."""
_SHELL_CODE = re.compile(r"-[a-zA-Z]*c")
_SPLIT_WORDS = re.compile(r"-[a-zA-Z0-9]*S.+|--s.*=.*")
"""The option of env whose value is a command, with the value."""

# Of each interpreter: options without a value in the next word, and options whose value is its code. Any other
# option may take what looks like a script for its value, or make the program read its input as well.
_SHELL_OPTIONS = (
    re.compile(r"-[abefhklmnptuvxBCEHPT]+|--(?:login|noprofile|norc|posix|verbose)"),
    re.compile(r"-[abefhiklmnptuvxBCEHPT]*c"),
)
_NO_FLAG = r"(?!)"
_NODE = r"--(?:test|watch|enable-source-maps|expose-gc|no-[\w-]+|experimental-[\w-]+|(?!interactive)[\w-]+=.*)"
_NODE_CODE = r"-e|-pe?|--(?:eval|print)(?:=.*)?"
_OPTIONS: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]] = {
    names: (re.compile(flags), re.compile(code))
    for names, flags, code in (
        ("python pypy", r"-[bBEIOPqsSuvx]+", r"-[bBEIOPqsSuvx]*c|-m"),
        ("perl", r"-[alnpsStTuUwWX]+|-[pn]i", r"-[alnpsStTuUwWX]*[eE]"),
        ("ruby", r"-[alnpsSwW]+|-[pn]i", r"-[alnpsSwW]*e"),
        ("node nodejs bun", _NODE, _NODE_CODE),
        ("deno", r"-q|--[\w-]+=.*", _NO_FLAG),
        ("julia", r"-q|--(?:color|project|startup-file|threads)=.*", r"-[eE]|--(?:eval|print)(?:=.*)?"),
        ("lua luajit", r"-[vE]", "-e"),
        ("php", r"-[nq]", "-r"),
        ("Rscript", r"--(?:vanilla|no-[\w-]+)", "-e"),
        ("groovy osascript", _NO_FLAG, "-e"),
        ("fish nu", _NO_FLAG, r"-c|--commands?(?:=.*)?"),
        ("csh tcsh powershell pwsh", _NO_FLAG, "-c"),
    )
}
_NO_OPTIONS = (re.compile(_NO_FLAG), re.compile(_NO_FLAG))
_REST_IS_FOR_CODE = re.compile(r"-\w*[cm]")
"""Behind the value of this option all words are for the code."""


def _exact_objection(words: Sequence[str], depth: int = 0) -> str:
    """Why no rule for exactly these words should be stored, as a sentence; empty if one may be.

    The words of `python3 x.py` say which file runs, so a person can agree to them knowing that the file may change;
    those of `python3` alone say nothing, because its code is in its input, which no rule sees. Whether the shell
    computes anything in the words is not asked here.
    """
    own = without_assignments(tuple(words))
    if not own or only_reads(own):
        return ""
    name = basename(own[0])
    row = program_named(name)
    code = list(_shell_code(row, own))
    reasons = (
        (row.runs_any and _runs_elsewhere(row), _ELSEWHERE),
        (row.runs_any and row.walks == "always", _FINDS),
        (name in _APPENDS_INPUT, _ARGUMENTS_FROM_INPUT),
        (_may_take_code_from_input(name, row, own[1:]), _FROM_INPUT),
        (depth >= _MAX_DEPTH or any(map(_EXPANSION.search, code)), _COMPUTED),
        (name == "env" and any(map(_SPLIT_WORDS.fullmatch, code)), _COMPUTED),
    )
    if reason := next((reason for holds, reason in reasons if holds), ""):
        return reason.format(name)
    inner = [*(one.words for text in code for one in guess_commands(text)), *_wrapped(row, own)]
    return next(filter(None, (_exact_objection(one, depth + 1) for one in inner)), "")


def _runs_elsewhere(row: Program) -> bool:
    """Whether its command runs as another user, on another machine or in a container."""
    reaches_host = row.effect == "network" and bool(row.code or row.wraps_after)
    return row.effect in ("privilege", "outside") or reaches_host


def _may_take_code_from_input(name: str, row: Program, arguments: tuple[str, ...]) -> bool:
    """Whether it, or a shell that it starts, may take code from its input, in any reading of its options."""
    if name in _READS_INPUT or _may_open_shell(name, row, arguments):
        return True
    if row.code == "editor" and row.runs_any:
        # Only sed is known well enough to tell.
        return not row.only_reads or "-" in arguments or _computes(name, arguments)
    names_input = any(word == "-" or _INPUT_FILE.fullmatch(normpath(word)) for word in arguments)
    if row.effect == "script" and row.code != "stdin":
        return names_input
    if not (row.code in ("shell", "stdin", "language") or name in _OTHER_LANGUAGES):
        return False
    if any(word in _INTERACTIVE or word.partition(".")[0] in _INTERACTIVE_MODULES for word in arguments):
        return True
    # The first operand of awk is its code.
    return names_input or not (row.only_reads or _says_what_runs(arguments, *_options_of(name, row)))


def _computes(name: str, arguments: tuple[str, ...]) -> bool:
    """Whether a script of sed may do more than replace text, such as run its input."""
    return any(not word.startswith("-") for word in dangerous_options(name, arguments))


def _may_open_shell(name: str, row: Program, arguments: tuple[str, ...]) -> bool:
    """Whether the program may start a shell because its arguments name no command."""
    if name in _OPENS_SHELL or (name in _OPENS_SHELL_ALONE and (arguments or ("-",))[0].startswith("-")):
        return True
    if name == "script":
        return not any(re.fullmatch(r"-\w*c|--command(=.*)?", word) for word in arguments)
    if name in _PACKAGE_RUNNERS:
        given = arguments if name == "npx" else arguments[1:] if arguments[:1] in (("exec",), ("x",)) else ("x",)
        given = given[1:] if given[:1] in (("-y",), ("--yes",), ("--",)) else given
        return not given or (given[0].startswith("-") and "--" not in given[:-1])
    is_manager = row.effect == "script" or name == "nix"
    return is_manager and bool(row.wraps_after) and not _SHELL_COMMANDS.isdisjoint(arguments[:1])


def _options_of(name: str, row: Program) -> tuple[re.Pattern[str], re.Pattern[str]]:
    bare = name.rstrip("0123456789.")
    found = next((both for names, both in _OPTIONS.items() if bare in names.split()), None)
    if found is None:
        return _SHELL_OPTIONS if row.code in ("shell", "stdin") else _NO_OPTIONS
    return found


def _says_what_runs(arguments: tuple[str, ...], flag: re.Pattern[str], gives_code: re.Pattern[str]) -> bool:
    """Whether the arguments certainly hold code, or name a script or a module."""
    has_code, at = "--test" in arguments, 0
    while at < len(arguments):
        word = arguments[at]
        if gives_code.fullmatch(word):
            if "=" not in word and (at + 1 == len(arguments) or arguments[at + 1].startswith("-")):
                return False
            if _REST_IS_FOR_CODE.fullmatch(word):
                return True
            has_code, at = True, at + ("=" not in word)
        elif not flag.fullmatch(word):
            return not word.startswith(("-", "+"))
        at += 1
    return has_code


def _shell_code(row: Program, own: tuple[str, ...]) -> Iterator[str]:
    """Words that a shell reads as code."""
    is_split = row.code == "words" and row.runs_any and not _wrapped_exactly(row, own)
    if is_split or (row.code == "shell" and any(map(_SHELL_CODE.fullmatch, own[1:]))):
        yield from own[1:]


def _wrapped_exactly(row: Program, own: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    return wrapped_commands(own) if isinstance(row.syntax, WrapperSyntax) else None


def _wrapped(row: Program, own: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What a wrapper runs: where it is not certain where the command begins, all that it may be."""
    inner = _wrapped_exactly(row, own)
    if inner is not None:
        yield from inner
    elif row.wraps or row.wraps_after.intersection(own):
        yield from (own[at:] for at in range(1, len(own)))


def _what_may_change(text: ShellText) -> str:
    """Sentences about what the same words may do another time, each preceded by a space."""
    sentences = dict.fromkeys(one for simple in text.commands if (one := _what_may_change_in(simple.words)))
    changing = [simple for simple in text.commands if not only_reads(without_assignments(simple.words) or ("",))]
    if changing and (text.read or any(simple.is_piped or simple.stdin for simple in changing)):
        sentences["The input may then be different, too."] = None
    return "".join(f" {one}" for one in sentences)


def _what_may_change_in(words: Sequence[str]) -> str:
    """What the same words may do another time, as a sentence; empty where they say all that is known."""
    own = without_assignments(tuple(words))
    if not own or only_reads(own):
        return ""
    row = read_command(own).row
    if inner := _wrapped_exactly(row, own):
        return _what_may_change_in(inner[0])
    name = basename(own[0])
    if source := _source(row, own):
        return f"What {'it' if source == own[0] else name} then does is in {source}, which may change."
    runs_code = row.code in ("shell", "stdin", "language", "words") or (row.wraps and own[1:])
    if runs_code or row.effect == "script" or name in _OTHER_LANGUAGES:
        return f"What {name} then does also depends on files, which may change."
    return ""


def _source(row: Program, own: tuple[str, ...]) -> str:
    """The file, or the module, that certainly says what the program does; empty if there is none."""
    if "/" in own[0] and row == Program():
        return own[0]
    if row.code not in ("shell", "stdin", "language") or row.only_reads:
        return ""
    match own[1:]:
        case ("-m", module, *_):
            return f"the module {module} and the files that it loads"
        case (script, *_) if re.fullmatch(r"[^-].*[./].*|[./].*", script):
            return script
    return ""
