"""Show what policy decides for a call, list its rules, and test it against labelled cases. No call is executed."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graph_agent.app.tool_catalog import registry_for
from graph_agent.app.toolset import default_registry, policy_of, roots_of
from graph_agent.config.paths import agent_paths, database_path, memory_file
from graph_agent.config.settings import Settings
from graph_agent.config.sources import item_key
from graph_agent.errors import UsageError
from graph_agent.ports import Grant
from graph_agent.toolbox.facts import PolicyContext
from graph_agent.toolbox.policy_check import PolicyCheck, check_call
from graph_agent.toolbox.tool_context import add_grants
from policy import (
    CHAIN_STEPS,
    MODES,
    CallFacts,
    Decision,
    InvalidRule,
    PathFact,
    PolicySettings,
    evaluate,
    parse_rules,
)
from tools.registry import ToolRegistry
from tools.schema import InvalidArguments
from tools.third_party import ToolQueryFailed, query_tool

__all__ = ["CaseResult", "EffectiveRule", "Report", "Score", "check_policy", "effective_rules", "run_policy_cases"]

_WAIT_S = 30.0
"""How long a call may take to be judged; a tool of others that never answers would keep the command for ever."""


@dataclass(frozen=True)
class Report:
    """What policy says to a call."""

    decision: Literal["allow", "ask", "deny"]
    rule: str
    reason: str
    parsed: Mapping[str, Any]
    """How the call was understood: its commands, its paths, its hosts."""
    problems: tuple[str, ...] = ()
    """A line for each plug-in, or tool of one, that is left out: it was not there to be judged."""
    allowed_in: tuple[str, ...] = ()
    """Where it asks: the threads that were allowed it always."""


@dataclass(frozen=True)
class EffectiveRule:
    """One line of the policy, in the order in which it is evaluated."""

    step: str
    list: str
    """allow, ask or deny; empty for what is built in."""
    rule: str
    source: str


async def check_policy(
    tool: str, arguments: Mapping[str, Any], settings: Settings, workspace: Path, grants: Sequence[Grant] = ()
) -> Report:
    """Judge a call that a new thread makes in this workspace under these settings and grants.

    Grants of single threads only tell where else it would pass. A server's tool is judged as the server says.

    Raises:
        ConfigError: a rule of the settings cannot be read.
        UsageError: the arguments are not what the tool takes.
    """
    everywhere = [grant for grant in grants if grant.scope != "thread"]
    policy = policy_of(settings)
    setting = PolicyContext(workspace, add_grants(policy, everywhere), roots_of(workspace, (), settings).usable)
    async with registry_for(tool, workspace, settings) as (registry, problems):
        try:
            judged = partial(check_call, tool, arguments, settings.mode, registry=registry, context=setting)
            checked = await query_tool(tool, judged, reraise=(InvalidArguments,), seconds=_WAIT_S)
        except (InvalidArguments, ToolQueryFailed) as error:
            raise UsageError(str(error)) from error
        allowed_in = tuple(_allowed_in(checked, policy, grants))
        return replace(_as_report(checked), problems=tuple(problems), allowed_in=allowed_in)


def _allowed_in(checked: PolicyCheck, policy: PolicySettings, grants: Sequence[Grant]) -> Iterator[str]:
    if checked.facts is None or checked.decision.verdict != "ask":
        return
    for thread_id in dict.fromkeys(grant.thread_id for grant in grants if grant.scope == "thread"):
        holding = [grant for grant in grants if grant.scope != "thread" or grant.thread_id == thread_id]
        if evaluate(checked.facts, add_grants(policy, holding)).verdict == "allow":
            yield thread_id


def _as_report(checked: PolicyCheck) -> Report:
    """The decision with how the call was understood."""
    decision, facts = checked
    return Report(decision.verdict, decision.rule, decision.reason, {} if facts is None else _parsed(facts))


def effective_rules(settings: Settings, grants: Sequence[Grant] = ()) -> Sequence[EffectiveRule]:
    """Everything that judges, first what speaks first.

    Raises:
        ConfigError: a rule cannot be read.
    """
    policy_of(settings)
    found: list[EffectiveRule] = []
    for step, speaker in CHAIN_STEPS:
        match speaker:
            case "built in":
                found.append(EffectiveRule(step, "", step, "built in"))
            case "granted":
                found += [
                    EffectiveRule(step, "allow", rule, f"grant {grant.id}")
                    for grant in grants
                    for rule in grant.rules
                ]
            case _:
                found += _of_list(step, speaker, settings)
    return found


def _of_list(step: str, name: Literal["allow", "ask", "deny"], settings: Settings) -> Iterator[EffectiveRule]:
    key, origins = f"policy.{name}", settings.origins
    for entry in settings.policy.rules(name):
        source = origins.get(item_key(key, entry.rule), origins.get(key, ""))
        yield EffectiveRule(step, name, entry.rule, source)


def _parsed(facts: CallFacts) -> Mapping[str, Any]:
    parsed: dict[str, Any] = {"tool": facts.tool, "mode": facts.mode, "risk": facts.risk}
    if facts.shell is not None:
        text = facts.shell
        parsed |= {
            "commands": [command.text for command in text.commands],
            "also_runs": [one.text for one in text.runs if one not in text.commands],
            "writes": list(map(_path, facts.redirects)),
            "is_plain": not text.unclear_reason,
            "not_plain_because": text.unclear_reason,
        }
    if facts.paths:
        parsed["paths"] = list(map(_path, facts.paths))
    if facts.hosts:
        parsed["hosts"] = list(facts.hosts)
    return parsed


def _path(path: PathFact) -> Mapping[str, Any]:
    return {"given": path.given, "resolved": str(path.resolved), "access": path.access, "inside": path.inside}


_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}
_AGENT = ".graph-agent"
_FILES = (
    "ws/README.md",
    "ws/src/app.py",
    "ws/.env",
    "ws/.git/config",
    "ws/secrets/a/b.txt",
    "ws/secrets2/b.txt",
    "out/data.txt",
    "ws-evil/data.txt",
    "home/.bashrc",
    "home/.ssh/id_rsa",
)
_FOLDERS = ("ws/lib", "ws/sub", "ws/.git/hooks", f"ws/{_AGENT}")
_LINKS = {
    "ws/link_out": "../out",
    "ws/src/link_out": "../../out",
    "ws/file_out.txt": "../out/data.txt",
    "ws/dangling.txt": "../out/new.txt",
    "ws/link_in": "src",
    "ws/notes.txt": ".env",
    "ws/innocent.txt": ".git/config",
}

_Verdict = Literal["allow", "ask", "deny"]


class _Lists(BaseModel):
    model_config = ConfigDict(extra="forbid")

    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []


class _Case(BaseModel):
    """One line of a file."""

    id: str
    tool: str
    args: dict[str, Any]
    rules: _Lists = _Lists()
    mode: Annotated[str, Field(pattern=f"^({'|'.join(MODES)})$")] = "default"
    expected: _Verdict


@dataclass(frozen=True)
class CaseResult:
    """One case, decided."""

    id: str
    expected: _Verdict
    decision: _Verdict
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
    """How many cases were decided how."""

    cases: int
    right: int
    stricter: int
    looser: int
    families: Mapping[str, Mapping[str, int]]
    """Per family, which is the id before its last dash."""


def run_policy_cases(path: Path) -> tuple[Sequence[CaseResult], Score]:
    """Decide every case of a file with one JSON object a line.

    Raises:
        UsageError: the file cannot be read, or a line is no case; the message names the line.
    """
    with tempfile.TemporaryDirectory(prefix="graph-agent-policy-") as folder:
        root = Path(folder).resolve()
        _build(root)
        scored = [_decide(case, line, root) for line, case in _cases(path, root)]
    return scored, _summed(scored)


def _cases(path: Path, root: Path) -> Iterator[tuple[int, _Case]]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield number, _Case.model_validate(_placed(json.loads(line), root))
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                place = ".".join(map(str, first["loc"]))
                raise UsageError(f"line {number} of {path}: {place}: {first['msg']}") from error
            except ValueError as error:
                raise UsageError(f"line {number} of {path} is no JSON object: {error}") from error


def _placed(value: Any, root: Path) -> Any:
    """The value with the fixture's folders in place of their names."""
    match value:
        case str():
            for name, folder in (("{WS}", root / "ws"), ("{OUT}", root / "out"), ("{HOME}", root / "home")):
                value = value.replace(name, str(folder))
            return value.replace("{AGENT}", _AGENT)
        case list():
            return [_placed(item, root) for item in value]
        case dict():
            return {key: _placed(item, root) for key, item in value.items()}
        case _:
            return value


def _decide(case: _Case, line: int, root: Path) -> CaseResult:
    workspace, home = root / "ws", root / "home"
    env = {"HOME": str(home)}
    try:
        rules = parse_rules(allow=case.rules.allow, ask=case.rules.ask, deny=case.rules.deny)
        own = agent_paths(env, database_path(env))
        policy = PolicySettings(rules=rules, reserved=own, exempt_files=(memory_file(env),), home=home)
        decision = _judged(case, default_registry(workspace, env=env), PolicyContext(workspace, policy))
    except InvalidRule as error:
        raise UsageError(f"case {case.id!r}, line {line}: {error}") from error
    return CaseResult(case.id, case.expected, decision.verdict, decision.rule, decision.reason)


def _judged(case: _Case, registry: ToolRegistry, setting: PolicyContext) -> Decision:
    try:
        return check_call(case.tool, case.args, case.mode, registry=registry, context=setting).decision
    except InvalidArguments as error:
        # The agent answers such a call with an error, and nobody is asked.
        return Decision("deny", "unusable arguments", str(error))


def _summed(scored: Sequence[CaseResult]) -> Score:
    total: Counter[str] = Counter()
    families: dict[str, Counter[str]] = {}
    for one in scored:
        kind = "right" if one.is_right else "looser" if one.is_looser else "stricter"
        total[kind] += 1
        families.setdefault(one.id.rpartition("-")[0] or one.id, Counter(right=0, stricter=0, looser=0))[kind] += 1
    return Score(
        len(scored),
        total["right"],
        total["stricter"],
        total["looser"],
        {name: dict(n) for name, n in families.items()},
    )


def _build(root: Path) -> None:
    for name in _FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    for name, target in _LINKS.items():
        (root / name).symlink_to(target)
