"""How long it takes to decide about a shell command: one never seen before, and the same once more.

The decision itself, from what the call would do to what policy says; no thread is changed for it.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import PolicySettings, evaluate, parse_rules
from tests.bench.figures import Figure, Row, Spread
from tests.bench.ground import Ground
from tools import create_default_tools
from tools.base import BaseTool

__all__ = ["ROWS"]

_LINES = (
    "git status --short",
    "ls -la src tests | head -{n}",
    "cd src && python -m pytest -q tests/test_{n}.py -x 2>&1 | tail -20",
    'for f in *.{n}; do wc -l "$f"; done',
    "grep -rn 'value {n}' . --include='*.py' | sort | uniq -c | sort -rn",
    "rm -rf build/{n} && mkdir -p build/{n} && cp -r src build/{n}/",
    "find . -name '*.{n}' -newer setup.py -exec sed -i 's/a/b/' {{}} +",
    "env A={n} bash -c 'make test && git commit -am \"work {n}\"'",
    "curl -fsSL https://example.org/{n}.tar.gz | tar xz -C /tmp/out{n}",
    "cat <<'END' > notes{n}.txt\nsome words\nEND",
)
_ALLOW = ["bash(git status:*)", "bash(ls:*)", "bash(pytest:*)", "read_file"]
_ASK = ["bash(git push:*)", "bash(curl:*)"]
_DENY = ["bash(rm -rf /:*)", "read_file(**/.env)"]


def _decisions(ground: Ground) -> Iterator[Figure]:
    new, repeated = _times_ms(ground.fresh("judging"), 10 if ground.quick else 40)
    for what, times, target in (("new", new, 10), ("repeated", repeated, 0.5)):
        ordered = sorted(times)
        late = Spread(ordered[int(len(ordered) * 0.95)], ordered[0], ordered[-1])
        yield Figure(f"decision about a bash line, {what}, p95", late, "ms", target)


def _times_ms(folder: Path, rounds: int) -> tuple[list[float], list[float]]:
    settings = PolicySettings(rules=parse_rules(allow=_ALLOW, ask=_ASK, deny=_DENY), reserved=(folder / "agent",))
    setting = PolicyContext(folder, settings)
    bash = next(tool for tool in create_default_tools(workspace=folder) if tool.name == "bash")
    decide = partial(_decision_ms, bash, setting)
    decide("true")
    lines = [line.format(n=number) for number in range(rounds) for line in _LINES]
    return [decide(line) for line in lines], [decide(lines[-1 - at % 10]) for at in range(len(lines))]


def _decision_ms(bash: BaseTool, setting: PolicyContext, line: str) -> float:
    began = time.perf_counter()
    evaluate(call_facts(bash, {"command": line}, Scope("t1", "default"), setting, "builtin"), setting.policy)
    return (time.perf_counter() - began) * 1000


ROWS = (Row("policy", _decisions),)
