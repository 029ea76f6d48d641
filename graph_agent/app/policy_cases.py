"""Holds labelled decisions against the rules, in a throwaway workspace. Executes none of the calls."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graph_agent.app.tooling import default_registry
from graph_agent.config.paths import database_path, memory_file, own_places
from graph_agent.errors import UsageError
from graph_agent.toolbox.checking import check_call
from graph_agent.toolbox.places import Setting
from policy import MODES, BadRule, Decision, PolicySettings, parse_rules
from tools.coercion import BadArguments
from tools.registry import ToolRegistry

__all__ = ["Score", "Scored", "score_file"]

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
class Scored:
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


def score_file(path: Path) -> tuple[Sequence[Scored], Score]:
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


def _decide(case: _Case, line: int, root: Path) -> Scored:
    workspace, home = root / "ws", root / "home"
    env = {"HOME": str(home)}
    try:
        rules = parse_rules(allow=case.rules.allow, ask=case.rules.ask, deny=case.rules.deny)
        own = own_places(env, database_path(env))
        policy = PolicySettings(rules=rules, reserved=own, open_files=(memory_file(env),), home=home)
        decision = _judged(case, default_registry(workspace, env=env), Setting(workspace, policy))
    except BadRule as error:
        raise UsageError(f"case {case.id!r}, line {line}: {error}") from error
    return Scored(case.id, case.expected, decision.verdict, decision.rule, decision.reason)


def _judged(case: _Case, registry: ToolRegistry, setting: Setting) -> Decision:
    try:
        return check_call(case.tool, case.args, case.mode, registry=registry, setting=setting).decision
    except BadArguments as error:
        # The agent answers such a call with an error, and nobody is asked.
        return Decision("deny", "unusable arguments", str(error))


def _summed(scored: Sequence[Scored]) -> Score:
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
