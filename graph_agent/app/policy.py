"""Show what policy decides for a call, list its rules, and test it against labelled cases. No call is executed."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, assert_never

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graph_agent.app.tool_catalog import registry_for
from graph_agent.app.toolset import default_registry, policy_of, roots_of, sandbox_of
from graph_agent.config.paths import agent_paths, database_path, memory_file, own_command, read_plain_text
from graph_agent.config.settings import Settings
from graph_agent.config.sources import item_key
from graph_agent.errors import UsageError
from graph_agent.ports import Grant, GrantEffect
from graph_agent.toolbox.facts import PolicyContext
from graph_agent.toolbox.policy_check import check_call
from graph_agent.toolbox.tool_context import add_grants
from policy import (
    CHAIN_STEPS,
    MODES,
    CallFacts,
    Decision,
    InvalidRule,
    PathFact,
    PolicySettings,
    call_risk,
    describe_programs,
    evaluate,
    parse_rules,
)
from tools.registry import ToolRegistry, resolve_tool_name
from tools.schema import InvalidArguments, declared_parameters
from tools.third_party import ToolQueryFailed, query_tool

__all__ = ["CaseResult", "EffectiveRule", "Report", "Score", "check_policy", "effective_rules", "run_policy_cases"]

_TIMEOUT_S = 30.0
"""How long the check of a call may take; a third-party tool that never answers would block the command for ever."""

Verdict = Literal["allow", "ask", "deny"]


_MEMORY_NOTE = "In a conversation with untrusted content it asks first, whatever rule allows it."


@dataclass(frozen=True)
class Report:
    """The decision for a call."""

    decision: Verdict
    rule: str
    reason: str
    parsed: Mapping[str, Any]
    """How the call was understood: its commands, its paths, its hosts."""
    problems: tuple[str, ...] = ()
    """A line for each plug-in, or tool of one, that is left out: it was not available for the check."""
    allowed_in: tuple[str, ...] = ()
    """If it asks: the threads with a permission for it."""
    note: str = ""
    """What a thread's content may change about the decision; empty if nothing."""


async def check_policy(
    tool: str, arguments: Mapping[str, Any] | str, settings: Settings, workspace: Path, grants: Sequence[Grant] = ()
) -> Report:
    """Evaluate a call that a new thread makes in this workspace under these settings and permissions.

    Text is the value of the only argument that the tool requires, such as the command of bash.
    Permissions of single threads only tell where else it would pass. For a tool of a server, the server is asked.

    Raises:
        ConfigError: a rule of the settings cannot be read.
        UsageError: the arguments are not what the tool takes.
    """
    policy = policy_of(settings)
    everywhere = [grant for grant in grants if grant.scope != "thread"]
    roots = roots_of(workspace, (), settings).usable
    context = PolicyContext(
        workspace, add_grants(policy, everywhere), roots, sandbox_of(settings, workspace, roots)
    )
    async with registry_for(tool, workspace, settings) as (registry, problems):
        given = _named_argument(tool, arguments, registry) if isinstance(arguments, str) else arguments
        try:
            check = partial(check_call, tool, given, settings.mode, registry=registry, context=context)
            decision, facts = await query_tool(tool, check, reraise=(InvalidArguments,), seconds=_TIMEOUT_S)
        except (InvalidArguments, ToolQueryFailed) as error:
            raise UsageError(str(error)) from error
        allowed_in: list[str] = []
        if facts is not None and decision.verdict == "ask":
            for thread_id in dict.fromkeys(grant.thread_id for grant in grants if grant.scope == "thread"):
                held = [grant for grant in grants if grant.scope != "thread" or grant.thread_id == thread_id]
                if evaluate(facts, add_grants(policy, held)).verdict == "allow":
                    allowed_in.append(thread_id)
        parsed = {} if facts is None else _parsed(facts, policy)
        may_ask = decision.verdict == "allow" and settings.mode != "bypassPermissions"
        note = _MEMORY_NOTE if may_ask and facts is not None and facts.changes_memory else ""
        allowed = tuple(allowed_in)
        return Report(decision.verdict, decision.rule, decision.reason, parsed, tuple(problems), allowed, note)


def _named_argument(tool: str, text: str, registry: ToolRegistry) -> dict[str, Any]:
    """The arguments of a call, of which this text is the only one that is required.

    Raises:
        UsageError: the tool requires none, or several.
    """
    name = resolve_tool_name(tool, registry.names())
    found = registry.get(name) if name else None
    if found is None:
        return {}  # The check of the call reports an unknown tool.
    required = declared_parameters(found.args_schema).get("required", ())
    if len(required) != 1:
        needs = f"requires {', '.join(required)}" if required else "requires no argument"
        raise UsageError(f"{name} {needs}. Give its arguments as one JSON object.")
    return {required[0]: text}


def _parsed(facts: CallFacts, policy: PolicySettings) -> Mapping[str, Any]:
    risk = call_risk(facts, policy)
    parsed: dict[str, Any] = {
        "tool": facts.tool,
        "mode": facts.mode,
        "risk": risk.level,
        "risk_reason": risk.reason,
        "declared_risk": facts.risk,
    }
    if facts.shell is not None:
        shell = facts.shell
        parsed |= {
            "commands": [command.text for command in shell.commands],
            "also_runs": [one.text for one in shell.runs if one not in shell.commands],
            "programs": describe_programs(shell),
            "sandbox": facts.sandbox,
            "writes": [_path(path) for path in facts.redirects],
            "is_plain": not shell.unclear_reason,
            "not_plain_because": shell.unclear_reason,
        }
    if facts.paths:
        parsed["paths"] = [_path(path) for path in facts.paths]
    if facts.hosts:
        parsed["hosts"] = list(facts.hosts)
    return parsed


def _path(path: PathFact) -> Mapping[str, Any]:
    return {"given": path.given, "resolved": str(path.resolved), "access": path.access, "inside": path.inside}


@dataclass(frozen=True)
class EffectiveRule:
    """One line of the policy, in the order in which it is evaluated."""

    step: str
    list: str
    """allow, ask or deny; empty for what is built in."""
    rule: str
    source: str


def effective_rules(settings: Settings, grants: Sequence[Grant] = ()) -> Sequence[EffectiveRule]:
    """Every rule, permission and built-in step, in the order of evaluation.

    Raises:
        ConfigError: a rule cannot be read.
    """
    policy_of(settings)
    found: list[EffectiveRule] = []
    for step, source in CHAIN_STEPS:
        match source:
            case "built in":
                found.append(EffectiveRule(step, "", step, "built in"))
            case "granted":
                found += _granted(step, "allow", grants)
            case "allow" | "ask" | "deny":
                key, origins = f"policy.{source}", settings.origins
                for entry in settings.policy.rules(source):
                    place = origins.get(item_key(key, entry.rule), origins.get(key, ""))
                    found.append(EffectiveRule(step, source, entry.rule, place))
                if source == "deny":
                    found += _granted(step, "deny", grants)
            case _ as never:
                assert_never(never)
    return found


def _granted(step: str, effect: GrantEffect, grants: Sequence[Grant]) -> Iterator[EffectiveRule]:
    """The saved rules that allow, or those that deny."""
    for grant in grants:
        if grant.effect == effect:
            yield from (EffectiveRule(step, effect, rule, f"grant {grant.id}") for rule in grant.rules)


_STRICTNESS: Mapping[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}
_AGENT_FOLDER = ".graph-agent"
_FIXTURE_FILES = (
    *("ws/README.md", "ws/src/app.py", "ws/.env", "ws/.git/config", "ws/secrets/a/b.txt", "ws/secrets2/b.txt"),
    *("out/data.txt", "ws-evil/data.txt", "home/.bashrc", "home/.ssh/id_rsa"),
)
_FIXTURE_FOLDERS = ("ws/lib", "ws/sub", "ws/.git/hooks", f"ws/{_AGENT_FOLDER}")
_FIXTURE_LINKS = {
    "ws/link_out": "../out",
    "ws/src/link_out": "../../out",
    "ws/file_out.txt": "../out/data.txt",
    "ws/dangling.txt": "../out/new.txt",
    "ws/link_in": "src",
    "ws/notes.txt": ".env",
    "ws/innocent.txt": ".git/config",
}


class _Rules(BaseModel):
    model_config = ConfigDict(extra="forbid")

    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []


class _Case(BaseModel):
    """One line of a file."""

    id: str
    tool: str
    args: dict[str, Any]
    rules: _Rules = _Rules()
    mode: Annotated[str, Field(pattern=f"^({'|'.join(MODES)})$")] = "default"
    expected: Verdict


@dataclass(frozen=True)
class CaseResult:
    """The decision for one case."""

    id: str
    expected: Verdict
    decision: Verdict
    rule: str
    reason: str

    @property
    def is_looser(self) -> bool:
        """Whether more was permitted than expected."""
        return _STRICTNESS[self.decision] < _STRICTNESS[self.expected]

    @property
    def is_right(self) -> bool:
        """Whether it was decided as expected."""
        return self.decision == self.expected


@dataclass(frozen=True)
class Score:
    """How many cases were decided as expected, more strictly, or more loosely."""

    cases: int
    right: int
    stricter: int
    looser: int
    families: Mapping[str, Mapping[str, int]]
    """Per family, which is the id before its last dash."""


def run_policy_cases(path: Path) -> tuple[Sequence[CaseResult], Score]:
    """Evaluate every case of a file with one JSON object per line.

    Raises:
        UsageError: the file cannot be read, or a line is no case; the message names the line.
    """
    with tempfile.TemporaryDirectory(prefix="graph-agent-policy-") as folder:
        root = Path(folder).resolve()
        _make_fixture(root)
        results = [_decide(case, line, root) for line, case in _cases(path, root)]
    families: dict[str, Counter[str]] = {}
    for one in results:
        kind = "right" if one.is_right else "looser" if one.is_looser else "stricter"
        family = one.id.rpartition("-")[0] or one.id
        families.setdefault(family, Counter(right=0, stricter=0, looser=0))[kind] += 1
    total = sum(families.values(), Counter[str]())
    by_family = {name: dict(counts) for name, counts in families.items()}
    return results, Score(len(results), total["right"], total["stricter"], total["looser"], by_family)


def _make_fixture(root: Path) -> None:
    for name in _FIXTURE_FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in _FIXTURE_FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    for name, target in _FIXTURE_LINKS.items():
        (root / name).symlink_to(target)


def _cases(path: Path, root: Path) -> Iterator[tuple[int, _Case]]:
    try:
        lines = read_plain_text(path).split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{str(path)!r} cannot be read: {error}. To see how one call is decided: {own_command()} policy check"
        ) from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield number, _Case.model_validate(_fill_in(json.loads(line), root))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ".".join(map(str, first["loc"]))
                raise UsageError(f"line {number} of {path}: {place}: {first['msg']}") from error
            except ValueError as error:
                raise UsageError(f"line {number} of {path} is not a JSON object: {error}") from error


def _fill_in(value: Any, root: Path) -> Any:
    """The value with the fixture's folders in place of their names."""
    match value:
        case str():
            for name, folder in (("{WS}", root / "ws"), ("{OUT}", root / "out"), ("{HOME}", root / "home")):
                value = value.replace(name, str(folder))
            return value.replace("{AGENT}", _AGENT_FOLDER)
        case list():
            return [_fill_in(item, root) for item in value]
        case dict():
            return {key: _fill_in(item, root) for key, item in value.items()}
        case _:
            return value


def _decide(case: _Case, line: int, root: Path) -> CaseResult:
    workspace, home = root / "ws", root / "home"
    env = {"HOME": str(home)}
    try:
        rules = parse_rules(allow=case.rules.allow, ask=case.rules.ask, deny=case.rules.deny)
        reserved = agent_paths(env, database_path(env))
        policy = PolicySettings(rules=rules, reserved=reserved, exempt_files=(memory_file(env),), home=home)
        registry, context = default_registry(workspace, env=env), PolicyContext(workspace, policy)
        decision = check_call(case.tool, case.args, case.mode, registry=registry, context=context).decision
    except InvalidRule as error:
        raise UsageError(f"case {case.id!r}, line {line}: {error}") from error
    except InvalidArguments as error:
        # The agent answers such a call with an error, and nobody is asked.
        decision = Decision("deny", "unusable arguments", str(error))
    return CaseResult(case.id, case.expected, decision.verdict, decision.rule, decision.reason)
