"""Tools at work: searching a hundred thousand files, large files, and the decision about a shell command.

`python -m tests.bench.tool_work FILE LINE` reads a range of a file, so that its memory can be measured.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.prebuilt import ToolNode
from langgraph.runtime import Runtime

from graph_agent.durable import DurableTools, Journal
from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import PolicySettings, evaluate, parse_rules
from tests.bench.figures import PYTHON, Figure, Row, Spread, pairs, seconds
from tests.bench.ground import Ground
from tests.peak import peak_mb
from tools import create_default_tools
from tools.base import BaseTool
from tools.file_ops.edit_file import EditFileTool
from tools.file_ops.glob import GlobTool
from tools.file_ops.grep import GrepTool
from tools.file_ops.grep_engine import find_ripgrep
from tools.file_ops.read_file import ReadFileTool

__all__ = ["ROWS"]

_MIB = 1024 * 1024
_BLOCK = b"".join(b"a line of a very large file, the end of which nobody sees %07d\n" % at for at in range(16_384))
_EARLY = (1_000, 200)
_EDITED = 10_000_000
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


def _grep(ground: Ground) -> Iterator[Figure]:
    tool = GrepTool(workspace=ground.tree)
    for pattern in ("needle", r"need(le|ing) s\w+", r"(?i)NEEDLE stands"):
        ours, reference = pairs(
            partial(_seconds, tool, pattern=pattern), partial(_rg_s, ground.tree, "-n", pattern), ground.runs
        )
        yield Figure(f"grep '{pattern}', {ground.files} files", ours, "s", 1.3, reference, "rg")


def _glob(ground: Ground) -> Iterator[Figure]:
    tool = GlobTool(workspace=ground.tree)
    names = partial(_rg_s, ground.tree, "--files")
    for pattern, target in (("**/file05.py", 2.0), ("**/*", 5.0)):
        ours, reference = pairs(partial(_seconds, tool, pattern=pattern), names, ground.runs)
        yield Figure(f"glob {pattern}, {ground.files} files", ours, "s", target, reference, "rg --files")


def _seconds(tool: GrepTool | GlobTool, *, pattern: str) -> float:
    return seconds(lambda: asyncio.run(tool.execute(pattern=pattern)))


def _rg_s(tree: Path, *arguments: str) -> float:
    program = find_ripgrep()
    if program is None:
        raise RuntimeError("there is no rg to compare with; it comes with the project's dependencies")
    return seconds(lambda: subprocess.run([program, *arguments, "."], cwd=tree, check=True, capture_output=True))


def _read_range(ground: Ground) -> Iterator[Figure]:
    large, small = ground.fresh("read") / "large.txt", ground.fresh("read") / "small.txt"
    _write(large, (128 if ground.quick else 1024) * _MIB)
    _write(small, 32 * _MIB)
    memory = [_memory_mb(large, offset) for offset in (1_000, 1_900_000 if ground.quick else 12_000_000)]
    yield Figure("read_file of ranges in 1 GB, memory over idle", Spread.of(memory), "MB", 32)
    ours, reference = pairs(lambda: _read_s(large), lambda: _read_s(small), ground.runs)
    yield Figure("read_file of early lines in 1 GB", ours, "s", 1.5, reference, "the same in 32 MB")


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        for _ in range(size // len(_BLOCK)):
            file.write(_BLOCK)


def _read_s(path: Path) -> float:
    tool = ReadFileTool(workspace=path.parent)
    return seconds(lambda: asyncio.run(tool.execute(file_path=path.name, offset=_EARLY[0], limit=_EARLY[1])))


def _memory_mb(path: Path, offset: int) -> float:
    """How much more a process needs at most that reads from there than one that reads a small file alone."""
    return _peak_mb(path, offset) - _peak_mb(Path(__file__), 1)


def _peak_mb(path: Path, offset: int) -> float:
    command = [PYTHON, "-m", "tests.bench.tool_work", str(path), str(offset)]
    code, most = peak_mb(command, env=os.environ, folder=Path.cwd())
    if code:
        raise RuntimeError(f"{path.name} was not read from line {offset}")
    return most


def _edit(ground: Ground) -> Iterator[Figure]:
    path = ground.fresh("edit") / "file.txt"
    lines = "".join(
        f"line {number} of a file that is edited, with a few words on it\n" for number in range(200_000)
    )
    path.write_text(lines[:_EDITED], encoding="utf-8")
    turns = iter(range(10_000))
    ours, reference = pairs(lambda: _edit_s(path, next(turns)), lambda: _copy_s(path), ground.runs)
    yield Figure("edit_file on 10 MB", ours, "s", 5, reference, "reading and writing it, synced")


def _edit_s(path: Path, turn: int) -> float:
    tool = EditFileTool(workspace=path.parent)
    old, new = (f"line 100000 of a {'file' if (turn + step) % 2 == 0 else 'book'} that" for step in (0, 1))
    return seconds(lambda: asyncio.run(tool.execute(file_path=path.name, old_string=old, new_string=new)))


def _copy_s(path: Path) -> float:
    def copy() -> None:
        content = path.read_bytes()
        with path.with_name("copy.txt").open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    return seconds(copy)


def _read(path: Path, offset: int) -> None:
    read = asyncio.run(ReadFileTool(workspace=path.parent).execute(file_path=path.name, offset=offset, limit=200))
    if read.error:
        raise RuntimeError(read.output)


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


def _durable_calls(ground: Ground) -> Iterator[Figure]:
    journal = Journal(ground.fresh("durable") / "journal.sqlite")
    durable, plain = DurableTools([_echo], journal=journal), ToolNode([_echo])
    numbers = iter(range(1_000_000))
    runs = 20 if ground.quick else 500
    times = [(_call_ms(durable, next(numbers)), _call_ms(plain, next(numbers))) for _ in range(runs)][1:]
    extra = Spread.one(median(ours for ours, _ in times) - median(theirs for _, theirs in times))
    yield Figure("durable tool call, more than with ToolNode, median", extra, "ms", 2)


@tool
def _echo(text: str) -> str:
    """Return the text."""
    return text


def _call_ms(node: ToolNode, number: int) -> float:
    call = {"name": "_echo", "args": {"text": "x"}, "id": f"call_{number}"}
    runtime: Runtime[None] = Runtime(context=None)
    config: Any = {"configurable": {"thread_id": "bench", "__pregel_runtime": runtime}}
    return seconds(lambda: node.invoke({"messages": [AIMessage("", tool_calls=[call])]}, config)) * 1000


ROWS = (
    Row("durable", _durable_calls),
    Row("grep", _grep),
    Row("glob", _glob),
    Row("read-range", _read_range),
    Row("edit", _edit),
    Row("policy", _decisions),
)

if __name__ == "__main__":
    _read(Path(sys.argv[1]), int(sys.argv[2]))
