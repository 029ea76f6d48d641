"""The tools without a session: they keep inside their workspace, and every failure is a result."""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tool_ports import ImmediateSubAgents
from tools import create_default_tools
from tools.agent_ops.skill import Skill
from tools.base import BaseTool, ToolContext
from tools.web_ops.web_search import SearchProvider

_TOOLS = sorted(
    tool.name
    for tool in create_default_tools(
        workspace=".",
        skills=(Skill("s", "d", "t", Path()),),
        search=SearchProvider("searxng", "http://127.0.0.1:9"),
    )
)
_DEEP: Any = []
for _ in range(2_000):
    _DEEP = [_DEEP]
_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 0.5, float("nan"), float("inf"), "", " ", "\0", "a\0b", "\ud800", "x" * 300_000,
    "../" * 2_000, "/proc/self/mem", "~nobody-is-called-this/x", "ftp://host/x", "http://[::1", "http://127.0.0.1:1/",
    "(((", "[", "{a,b", "**/../..", "blob:sha256:0", b"bytes", [], [None], {}, {"a": {"b": 1}}, object(), Path("x"),
    _DEEP, ["x"] * 100_000,
)  # fmt: skip
_NEEDED: Mapping[str, Any] = {
    "file_path": "here.txt", "content": "x", "pattern": "x", "command": "true", "url": "http://127.0.0.1:1/",
    "items": [], "fact": "x", "query": "x", "question": "x?", "prompt": "x", "result": "x", "name": "s", "id": "1",
    "old_string": "here", "new_string": "there", "plan": "x",
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("ws", "ws/sub", "other", "more"):
        (tmp_path / name).mkdir()
    (tmp_path / "ws/here.txt").write_text("here\n")
    (tmp_path / "other/secret.txt").write_text("canary\n")
    (tmp_path / "more/extra.txt").write_text("extra\n")
    (tmp_path / "ws/link").symlink_to(tmp_path / "other")
    return tmp_path


def _made(place: Path, **options: Any) -> dict[str, BaseTool]:
    tools = create_default_tools(
        workspace=place / "ws",
        memory_file=place / "memory.md",
        skills=(Skill("s", "d", "t", place),),
        search=SearchProvider("searxng", "http://127.0.0.1:9"),
        sub_agents=ImmediateSubAgents("ls"),
        **options,
    )
    return {tool.name: tool for tool in tools}


def _content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _calls(tool: BaseTool) -> list[dict[str, Any]]:
    """Every argument with every value, the others as they should be; then none, and one too many."""
    fields = tool.args_schema.model_fields
    required = {name: _NEEDED[name] for name, field in fields.items() if field.is_required()}
    if tool.name == "edit_file":
        required |= {"old_string": "here", "new_string": "there"}
    rows = [{**required, name: value} for name in fields for value in _VALUES]
    return [*rows, {}, {**required, "no_such_argument": 1}]


@pytest.mark.parametrize("name", _TOOLS)
async def test_whatever_the_arguments_are_the_outcome_is_a_result(name: str, place: Path) -> None:
    outside = _content(place / "other")
    rows = _calls(_made(place)[name])

    wrong: list[str] = []
    for arguments in rows:
        shown = {key: "nested" if value is _DEEP else repr(value)[:60] for key, value in arguments.items()}
        try:
            async with asyncio.timeout(20):
                result = await _made(place)[name].execute(**arguments)
        except Exception as error:  # noqa: BLE001 - that is what is tested
            wrong.append(f"{shown}: {error!r:.200}")
            continue
        if result.metadata.get("error_type") == "unknown":
            wrong.append(f"{shown}: {result!r:.200}")
        elif "canary" in result.output:
            wrong.append(f"{shown}: read outside")

    assert wrong == []
    assert len(rows) == 2 + len(_VALUES) * len(_made(place)[name].args_schema.model_fields)
    assert _content(place / "other") == outside


_OUTSIDE = (
    "../other/secret.txt",
    "{place}/other/secret.txt",
    "link/secret.txt",
    "sub/../../other/secret.txt",
    "/etc/passwd",
)
_FILE_CALLS: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("read_file", "file_path", {}),
    ("write_file", "file_path", {"content": "changed"}),
    ("edit_file", "file_path", {"old_string": "canary", "new_string": "changed"}),
    ("ls", "path", {}),
    ("glob", "path", {"pattern": "*"}),
    ("grep", "path", {"pattern": "canary"}),
    ("bash", "working_directory", {"command": "cat secret.txt"}),
)


@pytest.mark.parametrize("path", _OUTSIDE)
@pytest.mark.parametrize(("name", "argument", "others"), _FILE_CALLS, ids=[row[0] for row in _FILE_CALLS])
async def test_a_file_tool_keeps_inside_its_workspace(
    name: str, argument: str, others: Mapping[str, Any], path: str, place: Path
) -> None:
    text = path.format(place=place)
    if name in ("glob", "bash"):
        text = str(Path(text).parent)
    before = _content(place)

    result = await _made(place)[name].execute(**{argument: text, **others})

    assert (result.metadata["error_type"], "canary" in result.output) == ("permission", False)
    assert "outside the workspace" in (result.error or "")
    assert _content(place) == before


async def test_a_pattern_does_not_lead_outside_either(place: Path) -> None:
    tool = _made(place)["glob"]

    found = [
        await tool.execute(pattern=pattern) for pattern in ("../other/*", f"{place}/other/*", "link/*", "/etc/*")
    ]

    assert [one.metadata["error_type"] for one in found] == ["permission"] * 4


async def test_roots_widen_where_the_tools_work(place: Path) -> None:
    made = _made(place, roots=[place / "more"])

    read = await made["read_file"].execute(file_path=str(place / "more/extra.txt"))
    written = await made["write_file"].execute(file_path="../more/new.txt", content="new\n")
    ran = await made["bash"].execute(command="ls", working_directory="../more")
    refused = await made["read_file"].execute(file_path="../other/secret.txt")

    assert (read.output, written.error) == ("     1\textra", None)
    assert (place / "more/new.txt").read_text() == "new\n"
    assert ran.output.startswith("extra.txt\nnew.txt")
    assert refused.metadata["error_type"] == "permission"


_DESTRUCTIVE = (
    "rm -rf /", "rm -rf ~", "rm -rf $HOME/*", "cd / && rm -rf *", "sudo rm -rf /usr", "bash -c 'rm -rf /etc'",
    "mkfs.ext4 /dev/sda1", "dd if=/dev/zero of=/dev/sda", "echo x > /dev/nvme0n1", ":(){ :|:& };:",
    "true; chmod -R 777 /", "env -C / rm -r etc", "find / -delete",
)  # fmt: skip


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("command", _DESTRUCTIVE)
async def test_bash_refuses_what_no_mode_allows(command: str, background: bool, place: Path) -> None:
    marked = f"touch ran; exit 0\n{command}"  # Were it run, the shell would end before the rest.

    result = await _made(place)["bash"].execute(command=marked, background=background)

    assert (result.metadata["error_type"], (place / "ws/ran").exists()) == ("permission", False)
    assert "never run" in (result.error or "")


async def test_where_policy_decides_the_tool_does_not_decide_again(place: Path) -> None:
    context = ToolContext((place / "ws").resolve(), has_policy=True)

    result = await _made(place)["read_file"].execute(file_path="../other/secret.txt", context=context)

    assert result.output == "     1\tcanary"


async def test_a_workspace_that_is_gone_gives_results(place: Path) -> None:
    made = {tool.name: tool for tool in create_default_tools(workspace=place / "gone")}

    calls = {
        "ls": {},
        "glob": {"pattern": "*"},
        "grep": {"pattern": "x"},
        "read_file": {"file_path": "a"},
        "bash": {"command": "pwd"},
    }
    found = {name: await made[name].execute(**arguments) for name, arguments in calls.items()}

    assert {name: result.metadata.get("error_type") for name, result in found.items()} == {
        "ls": "not_found", "glob": "not_found", "grep": "not_found", "read_file": "not_found", "bash": "execution",
    }  # fmt: skip
