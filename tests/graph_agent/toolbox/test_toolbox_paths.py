"""Paths of every kind through policy and tool together: what is decided, and what then happens."""

import os
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.toolbox_world import World

_OUTSIDE = "outside-secret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def world(folder: Path) -> Iterator[World]:
    world = World(folder, deny=["read(secret.txt)"])
    ws, out = world.workspace, folder / "out"
    (folder / "ws-evil").mkdir()
    (folder / "ws-evil" / "data").write_text(_OUTSIDE)
    out.mkdir()
    (out / "data").write_text(_OUTSIDE)
    (out / "read-only").write_text(_OUTSIDE)
    (ws / "src").mkdir()
    (ws / "src" / "a.txt").write_text("inside\n")
    (ws / "secret.txt").write_text("denied-secret\n")
    links: dict[str, str | Path] = {
        "to_file": out / "data", "to_folder": out, "to_new": out / "new", "one": "two", "two": "three",
        "three": out / "data", "to_src": "src", "to_secret": "secret.txt", "loop": "loop", "ping": "pong",
        "pong": "ping", "to_environ": "/proc/self/environ", "to_nowhere": "src/missing",
    }  # fmt: skip
    for name, target in links.items():
        (ws / name).symlink_to(target)
    (ws / "twin.txt").hardlink_to(ws / "secret.txt")
    (ws / "shared.txt").hardlink_to(out / "data")
    yield world
    (ws / "src").chmod(0o755)


@pytest.mark.parametrize(
    ("given", "leads_to"),
    [
        ("to_file", "out/data"),
        ("one", "out/data"),
        ("to_folder/data", "out/data"),
        ("to_new", "out/new"),
        ("to_src/../../out/data", "out/data"),
        ("to_folder/../ws-evil/data", "ws-evil/data"),
        ("../ws-evil/data", "ws-evil/data"),
        ("src/../../out/./data", "out/data"),
        ("/proc/self/root/{folder}/out/data", "out/data"),
        ("to_folder/", "out"),
        ("to_folder/.", "out"),
    ],
)
@pytest.mark.parametrize("tool", ["read_file", "ls", "grep", "write_file", "edit_file"])
async def test_what_leads_outside_asks_naming_both_and_reads_nothing_silently(
    tool: str, given: str, leads_to: str, world: World, folder: Path
) -> None:
    path = given.replace("{folder}", str(folder))
    arguments = {
        "read_file": {"file_path": path}, "ls": {"path": path}, "grep": {"path": path, "pattern": "s"},
        "write_file": {"file_path": path, "content": "x"},
        "edit_file": {"file_path": path, "old_string": "outside", "new_string": "x"},
    }  # fmt: skip

    plans = {
        mode: await world.plan(tool, mode, **arguments[tool]) for mode in ("default", "acceptEdits", "dontAsk")
    }

    verdicts = {mode: plan.verdict for mode, plan in plans.items()}
    if any(verdict == "unusable" for verdict in verdicts.values()):
        assert tool in ("write_file", "edit_file")
        return
    assert verdicts == {"default": "ask", "acceptEdits": "ask", "dontAsk": "deny"}
    assert f"{path} leads to {folder / leads_to}, outside the workspace" in plans["default"].reason
    assert (folder / "out" / "data").read_text() == _OUTSIDE


@pytest.mark.parametrize(
    "given",
    ["to_src/a.txt", "src//a.txt", "src/./a.txt", "src/../src/a.txt", "to_src/../src/a.txt", "{ws}/src/a.txt"],
)
async def test_every_spelling_of_a_file_inside_is_read(given: str, world: World) -> None:
    plan, outcome = await world.go_through("read_file", file_path=given.replace("{ws}", str(world.workspace)))

    assert (plan.verdict, plan.paths) == ("allow", (str(world.workspace / "src" / "a.txt"),))
    assert "inside" in outcome.output


@pytest.mark.parametrize(
    "given", ["secret.txt", "./secret.txt", "to_secret", "twin.txt", "src/../twin.txt", "to_src/../secret.txt"]
)
async def test_a_denied_file_is_denied_by_every_name_it_has(given: str, world: World) -> None:
    read = await world.plan("read_file", file_path=given)
    edit = await world.plan("edit_file", "acceptEdits", file_path=given, old_string="denied", new_string="x")
    grep = await world.plan("grep", path=given, pattern="d")
    shell = await world.plan("bash", command=f"cat {given}")

    assert [plan.verdict for plan in (read, edit, grep, shell)] == ["deny", "deny", "deny", "ask"]


async def test_searches_show_a_denied_file_by_none_of_its_names(world: World) -> None:
    _, found = await world.go_through("grep", pattern="secret")
    _, names = await world.go_through("glob", pattern="**/*.txt")

    assert "denied-secret" not in found.output
    assert not any(name in names.output for name in ("secret.txt", "twin.txt"))


@pytest.mark.parametrize("given", ["loop", "ping", "ping/x"])
@pytest.mark.parametrize("tool", ["read_file", "ls", "write_file"])
async def test_a_loop_of_links_is_a_clear_error_at_once(tool: str, given: str, world: World) -> None:
    began = time.monotonic()
    arguments = {"path": given} if tool == "ls" else {"file_path": given}

    plan = await world.plan(tool, **arguments, **({"content": "x"} if tool == "write_file" else {}))

    assert plan.verdict == "unusable"
    assert "too many links" in plan.reason
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("given", "found"),
    [("a\0b", "NUL"), ("x" * 256, "too long"), ("x/" * 3000, "too long"), ("", "empty"), ("é" * 200, "too long")],
)
async def test_an_impossible_path_is_a_clear_error(given: str, found: str, world: World) -> None:
    plan = await world.plan("read_file", file_path=given)

    assert plan.verdict == "unusable"
    assert found in plan.reason


@pytest.mark.parametrize(
    "given", ["a\\b", "C:\\x", "%2e%2e/x", "..x", "...", " a", "-x", "a\nb", "~x.txt", "e\u0301", "\u00e9"]
)
async def test_odd_names_are_names_and_stay_inside(given: str, world: World) -> None:
    plan, outcome = await world.go_through("write_file", "acceptEdits", file_path=given, content="x")

    assert (plan.verdict, outcome.status) == ("allow", "success")
    assert (world.workspace / given).read_text() == "x"


@pytest.mark.parametrize("given", ["SRC/a.txt", "Secret.txt", "src/A.TXT"])
async def test_another_case_is_another_file_where_the_file_system_says_so(given: str, world: World) -> None:
    plan, outcome = await world.go_through("read_file", file_path=given)

    assert (plan.verdict, "does not exist" in outcome.output + str(outcome.error)) == ("allow", True)


@pytest.mark.parametrize(
    "given",
    ["/proc/self/environ", "to_environ", "/proc/self/mem", "/proc/self/maps", "/proc/self/fd/0", "/dev/fd/0",
     "/dev/stdin", "/proc/thread-self/environ", "/proc/self/task/{pid}/environ", "/proc/{pid}/environ"],
)  # fmt: skip
async def test_the_insides_of_a_process_ask_and_are_refused_even_then(given: str, world: World) -> None:
    plan = await world.plan("read_file", file_path=given.replace("{pid}", str(os.getpid())))
    outcome = await world.run_as(plan)

    assert (plan.verdict, outcome.status) == ("ask", "error")
    assert "PATH=" not in outcome.output


async def test_a_special_file_is_refused_without_waiting(world: World) -> None:
    ws = world.workspace
    os.mkfifo(ws / "pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        # The name of a socket is short: it is bound from within its folder.
        os.chdir(ws)
        opened.bind("sock")
    began = time.monotonic()

    found = [
        (await world.go_through("read_file", file_path=name))[1] for name in ("pipe", "sock", "/dev/null", "src")
    ]
    written = [
        await world.plan("write_file", file_path=name, content="x") for name in ("pipe", "sock", "src", "src/")
    ]

    assert [outcome.status for outcome in found] == ["error"] * 4
    errors = [outcome.output + str(outcome.error) for outcome in found]
    assert ("named pipe" in errors[0], "socket" in errors[1]) == (True, True)
    assert {plan.verdict for plan in written} == {"unusable"} or {plan.preview for plan in written} == {None}
    assert time.monotonic() - began < 5


async def test_a_write_to_a_hard_link_leaves_the_file_outside_unchanged(world: World, folder: Path) -> None:
    read, _ = await world.go_through("read_file", file_path="shared.txt")
    plan, outcome = await world.go_through("write_file", file_path="shared.txt", content="new")

    assert (read.verdict, plan.verdict, outcome.status) == ("allow", "ask", "success")
    assert "hard links: the other names" in outcome.output
    assert (folder / "out" / "data").read_text() == _OUTSIDE


async def test_a_file_of_a_terabyte_is_read_in_part_and_not_edited(world: World) -> None:
    with (world.workspace / "huge").open("wb") as file:
        file.write(b"first\nsecond\n")
        file.truncate(1 << 40)

    _, read = await world.go_through("read_file", file_path="huge", limit=1)
    _, edit = await world.go_through("edit_file", file_path="huge", old_string="first", new_string="x")
    _, grep = await world.go_through("grep", pattern="first", path="huge")

    assert "first" in read.output
    assert str(1 << 40) in read.output
    assert edit.status == "error"
    assert "first" not in grep.output.partition("[")[0].replace("'first'", "")


async def test_a_read_only_file_is_not_edited(world: World) -> None:
    path = world.workspace / "src" / "a.txt"
    path.chmod(0o444)
    await world.go_through("read_file", file_path="src/a.txt")

    _, outcome = await world.go_through("edit_file", file_path="src/a.txt", old_string="inside", new_string="x")

    assert outcome.status == "error"
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("inside\n", 0o444)


async def test_a_workspace_may_be_reached_through_a_link(folder: Path) -> None:
    world = World(folder)
    (world.workspace / "a").write_text("x")
    (folder / "alias").symlink_to(world.workspace)

    plans = [await world.plan("read_file", file_path=str(folder / name / "a")) for name in ("ws", "alias")]

    assert [plan.verdict for plan in plans] == ["allow", "allow"]


async def test_a_file_that_became_a_link_after_it_was_evaluated_is_not_read(world: World, folder: Path) -> None:
    plan = await world.plan("read_file", file_path="src/a.txt")
    (world.workspace / "src" / "a.txt").unlink()
    (world.workspace / "src" / "a.txt").symlink_to(folder / "out" / "data")

    outcome = await world.run_as(plan)

    assert (plan.verdict, outcome.status) == ("allow", "error")
    assert "led elsewhere when the call was evaluated" in outcome.output + str(outcome.error)
    assert _OUTSIDE not in outcome.output


async def test_a_file_that_became_a_link_to_another_one_inside_is_read_when_that_is_allowed(world: World) -> None:
    plan = await world.plan("read_file", file_path="later/a.txt")
    (world.workspace / "later").symlink_to("src")
    denied = await world.plan("read_file", file_path="new.txt")
    (world.workspace / "new.txt").symlink_to("secret.txt")

    outcomes = [await world.run_as(plan), await world.run_as(denied)]

    assert [outcome.status for outcome in outcomes] == ["success", "error"]
    assert "denied-secret" not in outcomes[0].output + outcomes[1].output


async def test_an_outside_file_that_was_approved_is_read_and_no_other_one(world: World, folder: Path) -> None:
    plan = await world.plan("read_file", file_path="to_file")
    approved = await world.run_as(plan)
    (world.workspace / "to_file").unlink()
    (world.workspace / "to_file").symlink_to(folder / "ws-evil" / "data")

    swapped = await world.run_as(plan)

    assert (approved.status, _OUTSIDE in approved.output) == ("success", True)
    assert (swapped.status, _OUTSIDE in swapped.output) == ("error", False)


@pytest.mark.parametrize(
    ("given", "pattern", "verdict"),
    [
        (".", "../**", "ask"),
        (".", "/etc/*", "ask"),
        ("to_folder", "*", "ask"),
        (".", "to_folder/*", "ask"),
        (".", "src/*", "allow"),
    ],
)
async def test_a_pattern_that_climbs_or_names_a_link_asks(
    given: str, pattern: str, verdict: str, world: World
) -> None:
    assert (await world.plan("glob", path=given, pattern=pattern)).verdict == verdict


async def test_searches_follow_no_link(world: World) -> None:
    (world.workspace / "src" / "up").symlink_to("..")
    began = time.monotonic()

    outputs = [
        (await world.go_through("grep", pattern="outside"))[1].output,
        (await world.go_through("glob", pattern="**/data"))[1].output,
        (await world.go_through("ls", depth=5))[1].output,
    ]

    # The hard link cannot be found from a file of the workspace.
    assert [output.count(_OUTSIDE) for output in outputs] == [1, 0, 0]
    assert time.monotonic() - began < 5
