"""Calls before they run: verdict and preview, grants, proposed rules, and whether an approval still fits."""

from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pytest

from graph_agent.errors import StorageError
from graph_agent.ports import Grant, GrantScope, PreparedCall, Scope
from graph_agent.toolbox import GraphToolbox, ToolboxDependencies
from graph_agent.toolbox.call_preparation import allowed_paths, as_preview
from policy import CallFacts, PathFact, PolicySettings, parse_rules
from tests.fakes.tool_ports import MemoryBlobs, ToolEnvironment
from tests.fakes.toolbox_world import World, call_of
from tools import create_default_tools
from tools.base import Preview
from tools.paths import PathRefused
from tools.registry import ToolRegistry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_SCOPE = Scope("t1", "default")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_read_inside_is_allowed_and_needs_no_preview(world: World) -> None:
    assert await world.plan(" Read\n", path="a.txt", offset="2") == PreparedCall(
        tool_name="read_file",
        arguments={"file_path": "a.txt", "offset": 2},
        verdict="allow",
        reason="read_file has low risk.",
        rule="risk low",
        risk="low",
        kind="readonly",
        concurrency_safe=True,
        summary="read_file a.txt (offset 2)",
        paths=(str(world.workspace / "a.txt"),),
    )


async def test_a_write_asks_with_its_diff_and_the_file_version_it_was_made_from(world: World) -> None:
    plan = await world.plan("write_file", file_path="a.txt", content="x\n")

    path = str(world.workspace / "a.txt")
    assert (plan.verdict, plan.risk, plan.kind, plan.concurrency_safe) == ("ask", "medium", "write", False)
    assert plan.preview == {
        "kind": "diff",
        "text": f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n",
        "observed": {"path": path, "device": None, "inode": None, "sha256": None},
    }
    assert not (world.workspace / "a.txt").exists()


async def test_a_command_asks_with_how_it_was_understood(world: World) -> None:
    plan = await world.plan("bash", command="make\nmake test")

    assert (plan.verdict, plan.risk, plan.kind, plan.summary) == ("ask", "high", "execute", "$ make (+1 line)")
    assert plan.preview == {
        "kind": "text",
        "text": f"runs    make\nruns    make test\nin      {world.workspace}",
        "observed": {"folder": str(world.workspace)},
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("search_files", {"query": "x"}, "There is no tool 'search_files'. Did you mean grep or glob?"),
        ("read_file", {"file_path": "a", "offset": "two"}, 'offset: got "two" (string), expected integer'),
        ("read_file", {"file_path": "a\0b"}, "NUL"),
        ("bash", {"command": " "}, "command: it is empty"),
        ("write_file", {"file_path": ".", "content": ""}, "'.' is a folder"),
    ],
)
async def test_a_call_that_cannot_work_is_unusable_and_says_what_to_do(
    world: World, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    plan = await world.plan(tool, **arguments)

    assert (plan.verdict, plan.preview) == ("unusable", None)
    assert reason in plan.reason


async def test_the_agents_own_files_are_denied_in_every_mode(world: World, tmp_path: Path) -> None:
    (world.workspace / "link").symlink_to(tmp_path / "agent")

    plan = await world.plan("write_file", "bypassPermissions", file_path="link/config.toml", content="x")

    assert (plan.verdict, plan.rule, plan.preview) == ("deny", "agent's own files", None)


async def test_a_read_through_a_link_to_outside_asks_and_names_both(world: World, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (world.workspace / "notes").symlink_to(tmp_path / "secret")

    plan = await world.plan("read_file", file_path="notes")

    assert plan.verdict == "ask"
    assert f"notes leads to {tmp_path.resolve() / 'secret'}" in plan.reason


async def test_a_preview_says_what_it_does_not_show_and_where_all_of_it_is(world: World, tmp_path: Path) -> None:
    blobs, text, kept = MemoryBlobs(tmp_path), "0123456789\n" * 3000, 11 * 1818
    short = as_preview(Preview("text", "short"), blobs)
    stored_for_short = dict(blobs.stored)

    shown = as_preview(Preview("diff", text, {"path": "/f"}), blobs)
    plan = await world.plan("write_file", file_path="a", content="0123456789\n" * 5000)

    (reference,) = blobs.stored
    assert (short, stored_for_short) == ({"kind": "text", "text": "short", "observed": None}, {})
    assert shown == {
        "kind": "diff",
        "text": f"{text[:kept]}[… 1183 more lines, {33_000 - kept} characters, are not shown here; "
        f"the whole text is {reference}]\n",
        "observed": {"path": "/f"},
        "full": reference,
        "full_chars": 33_000,
    }
    assert plan.preview is not None
    assert len(world.around.blobs.get(plan.preview["full"])) == plan.preview["full_chars"]


@pytest.mark.parametrize(("is_approved", "moves"), [(True, True), (True, False), (False, True)])
async def test_a_command_approved_for_one_folder_runs_in_no_other(
    world: World, is_approved: bool, moves: bool
) -> None:
    (world.workspace / "sub").mkdir()
    plan = await world.plan("bash", command="touch here")
    call = call_of(plan.tool_name, plan.arguments)
    call["preview"] = plan.preview or {}
    if is_approved:
        call["approved_at"] = "2026-01-01T00:00:00Z"
    now = str(world.workspace / "sub") if moves else ""

    outcome = await world.box.run(call, Scope("t1", "default", now))

    made = [path for path in ("here", "sub/here") if (world.workspace / path).exists()]
    if is_approved and moves:
        error = f"approved to run in {world.workspace}, and would run in {now} now, so nothing was done"
        assert (outcome.status, error in (outcome.error or ""), made) == ("error", True, [])
    else:
        assert (outcome.status, made) == ("success", ["sub/here" if moves else "here"])


_GRANT = Grant("thread", ("bash(ls -la)",), "default", "t1", "/w", "c", "chat", "2026-01-01T00:00:00.000Z", id=3)


class _Grants:
    def __init__(self, *grants: Grant) -> None:
        self.grants = list(grants)
        self.asked: list[tuple[str, str]] = []

    async def in_force(self, thread_id: str, workspace: str) -> list[Grant]:
        self.asked.append((thread_id, workspace))
        return self.grants

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:
        return None


async def _record_nothing(*_: object) -> None:
    return None


def _box(
    folder: Path, *grants: Grant, given: _Grants | None = None, blobs: MemoryBlobs | None = None
) -> tuple[GraphToolbox, Path, _Grants]:
    around, given = ToolEnvironment(folder), given or _Grants(*grants)
    registry = ToolRegistry()
    registry.register_all(create_default_tools(workspace=around.workspace))
    dependencies = ToolboxDependencies(blobs or around.blobs, around.file_states, _record_nothing, grants=given)
    box = GraphToolbox(registry, workspace=around.workspace, policy=PolicySettings(), dependencies=dependencies)
    return box, around.workspace, given


class _Unreachable(_Grants):
    async def in_force(self, thread_id: str, workspace: str) -> list[Grant]:
        raise StorageError("the server cannot be reached")


class _UnreachableBlobs(MemoryBlobs):
    def put(self, data: bytes) -> str:
        raise OSError("as tools see it") from StorageError("the server cannot be reached")


@pytest.mark.parametrize(
    ("step", "fails"), [("prepare", "grants"), ("prepare", "blobs"), ("propose", "grants"), ("intend", "grants")]
)
async def test_a_database_that_cannot_be_reached_is_no_failure_of_the_tool(
    tmp_path: Path, step: str, fails: str
) -> None:
    grants = _Unreachable() if fails == "grants" else None
    blobs = _UnreachableBlobs(tmp_path) if fails == "blobs" else None
    box, workspace, _ = _box(tmp_path, given=grants, blobs=blobs)
    arguments = {"path": str(workspace / "new.txt"), "content": "long line\n" * 5_000}
    work: dict[str, Callable[[], Awaitable[object]]] = {
        "prepare": lambda: box.prepare("write_file", arguments, _SCOPE),
        "propose": lambda: box.propose("write_file", arguments, _SCOPE),
        "intend": lambda: box.record_intent(call_of("write_file", arguments), _SCOPE),
    }

    with pytest.raises(StorageError, match="the server cannot be reached"):
        await work[step]()


@pytest.mark.parametrize(
    ("scope", "where"), [("thread", "this thread"), ("project", "this project"), ("user", "everywhere")]
)
async def test_a_grant_allows_the_call_names_itself_and_holds_until_it_is_revoked(
    tmp_path: Path, scope: GrantScope, where: str
) -> None:
    box, workspace, given = _box(tmp_path, replace(_GRANT, scope=scope))

    plan = await box.prepare("bash", {"command": "ls -la"}, _SCOPE)
    given.grants.clear()
    after = await box.prepare("bash", {"command": "ls -la"}, _SCOPE)

    assert (plan.verdict, plan.rule) == ("allow", f"grant 3 ({where})")
    assert plan.reason == f"Always allowed by grant 3 ({where}): 'bash(ls -la)'."
    assert (after.verdict, given.asked[0]) == ("ask", ("t1", str(workspace)))


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
@pytest.mark.parametrize("rule", ["read_file({}/secret.txt)", "read_file({}/link.txt)"])
@pytest.mark.parametrize("found", [{"pattern": "hunter"}, {"pattern": "hunter", "path": "."}])
async def test_what_is_always_denied_is_not_found_by_a_search_either(
    tmp_path: Path, mode: str, rule: str, found: dict[str, str]
) -> None:
    box, workspace, given = _box(tmp_path)
    for name in ("secret.txt", "open.txt"):
        (workspace / name).write_text(f"hunter in {name}\n")
    (workspace / "link.txt").symlink_to("secret.txt")
    given.grants.append(replace(_GRANT, rules=(rule.format(workspace),), effect="deny"))
    scope = replace(_SCOPE, mode=mode)

    plan = await box.prepare("grep", found, scope)
    outcome = await box.run(call_of("grep", plan.arguments), scope)
    named = await box.prepare("read_file", {"file_path": "secret.txt"}, scope)

    assert plan.verdict == "allow"
    assert outcome.output == "open.txt:1:hunter in open.txt\n[left out: 2 withheld by a rule]"
    assert named.verdict == "deny"


async def test_a_grant_that_cannot_be_read_allows_nothing(tmp_path: Path) -> None:
    box, *_ = _box(tmp_path, replace(_GRANT, rules=("(", "bash(ls -la)")))

    assert (await box.prepare("bash", {"command": "ls -la"}, _SCOPE)).verdict == "ask"


async def test_a_proposed_rule_holds_for_what_the_tool_would_get(tmp_path: Path) -> None:
    box, workspace, _ = _box(tmp_path)

    written = await box.propose("write", {"path": "./a.txt", "content": ""}, _SCOPE)

    assert (written.rules, written.objection) == ((f"write_file({workspace}/a.txt)",), "")
    refused = [
        await box.propose("bash", {"command": 7.5}, _SCOPE),
        await box.propose("no_such_tool", {}, _SCOPE),
        await box.propose("write_file", {"file_path": "a\0b", "content": ""}, _SCOPE),
    ]
    assert [(proposal.rules, proposal.objection != "") for proposal in refused] == [((), True)] * 3


@pytest.mark.parametrize(
    ("cwd", "arguments", "verdict"),
    [
        ("", {}, "ask"),
        ("sub", {}, "allow"),
        ("", {"working_directory": "sub"}, "allow"),
        ("", {"working_directory": "sub/../sub"}, "allow"),
        ("sub", {"working_directory": "."}, "ask"),
        ("other", {}, "ask"),
    ],
)
async def test_a_grant_for_a_command_holds_only_in_its_folder(
    tmp_path: Path, cwd: str, arguments: dict[str, str], verdict: str
) -> None:
    box, workspace, _ = _box(tmp_path, replace(_GRANT, folder="sub"))
    (workspace / "sub").mkdir()
    scope = Scope("t1", "default", str(workspace / cwd) if cwd else "")
    call = {"command": "ls -la", **arguments}

    plan, proposal = await box.prepare("bash", call, scope), await box.propose("bash", call, scope)

    assert plan.verdict == verdict
    folder = "sub" if verdict == "allow" else cwd if not arguments and cwd else "."
    assert (proposal.rules, proposal.folder) == (("bash(ls -la)",), folder)


@pytest.mark.parametrize(
    ("mode", "denied"),
    [("default", ""), ("plan", "bash cannot be used in plan mode; get the plan approved first.")],
)
async def test_a_proposal_says_whether_the_call_may_still_be_approved(
    tmp_path: Path, mode: str, denied: str
) -> None:
    box, _, _ = _box(tmp_path)

    assert (await box.propose("bash", {"command": "touch x"}, Scope("t1", mode))).denied == denied


_INSIDE = PathFact("x", PurePath("/ws/x"), "read", inside=True)
_OUTSIDE = PathFact("x", PurePath("/out/x"), "read", inside=False)


@pytest.mark.parametrize(
    ("path", "approved", "deny", "is_allowed"),
    [
        (_OUTSIDE, ["/out/x"], [], True),
        (_OUTSIDE, None, [], True),
        (_INSIDE, ["/ws/x"], [], True),
        (_INSIDE, ["/ws/old"], [], True),
        (_OUTSIDE, ["/ws/x"], [], False),
        (_OUTSIDE, ["/ws/x"], ["read(/out/**)"], False),
        (_INSIDE, ["/ws/y"], ["read(x)"], False),
    ],
)
def test_a_call_may_open_what_was_evaluated_or_what_is_allowed_unasked_now(
    path: PathFact, approved: list[str] | None, deny: list[str], is_allowed: bool
) -> None:
    facts = CallFacts("read_file", "default", "low", "readonly", PurePath("/ws"), paths=(path,))
    settings = PolicySettings(rules=parse_rules(deny=deny))
    if is_allowed:
        assert allowed_paths(facts, approved, settings) == {Path(path.resolved)}
        return

    with pytest.raises(PathRefused, match=f"'x' leads to '{path.resolved}' now, and led elsewhere when the call"):
        allowed_paths(facts, approved, settings)
