"""Rules and grants cover a command in the folder and in the shell in which it stands, not the words alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import (
    CallFacts,
    Grant,
    PolicySettings,
    evaluate,
    granted_rules,
    parse_rules,
    propose,
)
from tools import create_default_tools

_BASH = next(tool for tool in create_default_tools(workspace=".") if tool.name == "bash")
_ASKING_MODES = ("default", "acceptEdits", "auto")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path.resolve() / "ws"
    for name in ("sub/deep", "other", ".git", "out"):
        (place / name).mkdir(parents=True)
    (place.parent / "outside/deep").mkdir(parents=True)
    (place / "to_sub").symlink_to("sub")
    (place / "to_outside").symlink_to("../outside")
    (place / "to_deep").symlink_to("sub/deep")
    for name in ("a", "b", ".git/config"):
        (place / name).write_text("x\n")
    monkeypatch.setenv("HOME", str(place.parent))
    return place


def _settings(
    *, allow: Sequence[str] = (), grants: Sequence[str] = (), folder: str = ".", **rules: Sequence[str]
) -> PolicySettings:
    """The rules of one list, and exact rules that were granted for a call that started in a folder."""
    granted = Grant("grant 1", "default", granted_rules(grants, (), folder))
    return PolicySettings(parse_rules(allow=allow, **rules), grants=(granted,) if grants else ())


def _facts(workspace: Path, command: str, mode: str = "default", cwd: str = "") -> CallFacts:
    scope = Scope("t", mode, str(workspace / cwd) if cwd else "")
    return call_facts(_BASH, {"command": command}, scope, PolicyContext(workspace, PolicySettings()), "builtin")


def _verdict(workspace: Path, command: str, settings: PolicySettings, mode: str = "default", cwd: str = "") -> str:
    scope = Scope("t", mode, str(workspace / cwd) if cwd else "")
    facts = call_facts(_BASH, {"command": command}, scope, PolicyContext(workspace, settings), "builtin")
    return evaluate(facts, settings).verdict


# Folders

_INSIDE = ("sub", "./sub/", "sub/deep", "sub/../sub", "to_sub", ".", "{ws}/sub", "nosuch", "''")
_OUTSIDE = ("..", "/", "/tmp", "to_outside", "to_outside/deep", "sub/../..", "../outside", "to_deep/..", "''/..")
_WAYS = (
    "cd {} && make", "cd {}; make", "cd {} || make", "cd -P {} && make", "cd -- {} && make",
    "command cd {} && make", "builtin cd {}; make", "pushd {} && make", "pushd -- {}; make", "(cd {}; make)",
    "{{ cd {}; }} && make", "if cd {}; then make; fi", "! cd {} || make", "cd {} && ls | make",
    "cd sub && cd .. && cd {} && make", "make && cd {} && make", "env -C {} make", "env --chdir={} make",
    "timeout 5 env -C {} make", "make -C {}",
    "make --directory={}", "make -kC {}", "git -C {} status", "sudo -D {} make", "ninja -C {}", "cd {} & make",
    "cd {} | make", "make; cd {}",
)  # fmt: skip
_STAYS = frozenset(("cd {} || make", "cd {} & make", "cd {} | make", "make; cd {}"))
"""Ways to name the folder that leave the commands where they were."""


def _folder_rows() -> Iterator[tuple[str, bool]]:
    """A command, and whether all of it works in the workspace."""
    for way, place in product(_WAYS, (*_INSIDE, *_OUTSIDE)):
        if "=" in way and place.startswith("'"):
            continue
        yield way.format(place), place in _INSIDE or way in _STAYS


def test_an_allow_rule_covers_a_command_only_where_it_works_in_the_workspace(workspace: Path) -> None:
    rows = [(command.replace("{ws}", str(workspace)), inside) for command, inside in _folder_rows()]
    lists = (
        ["bash"],
        ["bash(*)"],
        [f"bash({name}*)" for name in ("builtin", "cd", "command", "env", "git -C", "ls", "make", "ninja", "pushd")]
        + ["bash(sudo*)", "bash(timeout*)"],
    )

    wrong = [
        (command, allow[0], mode)
        for (command, inside), allow, mode in product(rows, lists, _ASKING_MODES)
        if _verdict(workspace, command, _settings(allow=allow), mode) == "allow" and not inside
    ]
    too_strict = [
        command
        for command, inside in rows
        # What an earlier command may make a link in the place of a missing folder is not known.
        if inside
        and command != "make && cd nosuch && make"
        and _verdict(workspace, command, _settings(allow=["bash"])) != "allow"
    ]

    assert len(rows) > 450
    assert (wrong, too_strict) == ([], [])


_GRANTED = (
    (
        "make",
        ("make", "true && make", "cd . && make", "(make)", "cd sub || make", "cd sub && cd .. && make"),
        (
            "cd sub && make", "cd sub; make", "env -C sub make", "make -C sub", "pushd sub && make",
            "cd to_sub && make", "cd nosuch; make", "cd sub x; make", "cd ..; make", "cd; make", "cd -; make",
        ),
    ),
    (
        "cd sub && make",
        ("cd sub && make", "cd ./to_sub && cd . && make", "cd sub && (make)", "cd sub && ls | make"),
        (
            "make", "cd sub; make", "cd other && make", "cd sub || make", "cd sub/deep && make",
            "cd sub && cd deep && make", "cd sub && env -C deep make", "cd sub && cd - && make",
            "cd sub && cd -; make",
        ),
    ),
    (
        "cd sub; make",
        ("cd sub; make", "cd to_sub; make", "cd sub\nmake"),
        ("make", "cd sub && make", "cd other; make"),
    ),
    (
        "pushd sub && make && popd && git status",
        ("pushd sub && make && popd && git status", "git status", "cd sub && make"),
        ("make", "cd sub && git status", "pushd sub; make; popd; git status"),
    ),
    ("make -C sub", ("make -C sub",), ("make", "cd other && make -C sub", "make -C other", "cd sub && make -C .")),
)  # fmt: skip
"""A command, commands that *always* for it covers together with rules for what only moves or reads, and others."""


@pytest.mark.parametrize("mode", _ASKING_MODES)
@pytest.mark.parametrize(("command", "covered", "others"), _GRANTED)
def test_always_covers_each_command_in_its_own_folder_and_nowhere_else(
    workspace: Path, command: str, covered: tuple[str, ...], others: tuple[str, ...], mode: str
) -> None:
    moves = ["bash(cd*)", "bash(pushd*)", "bash(popd*)", "bash(env*)", "bash(ls)", "bash(true)"]
    facts = _facts(workspace, command, mode)
    proposal = propose(facts, _settings(allow=moves), "")
    grant = Grant("grant 1", mode, granted_rules(proposal.rules, proposal.folders, facts.folder))
    settings = replace(_settings(allow=moves), grants=(grant,))

    verdicts = {text: _verdict(workspace, text, settings, mode) for text in (*covered, *others)}

    assert proposal.rules
    assert verdicts == {**dict.fromkeys(covered, "allow"), **dict.fromkeys(others, "ask")}


def test_a_grant_of_an_earlier_version_covers_its_commands_in_the_folder_in_which_the_text_began(
    workspace: Path,
) -> None:
    settings = _settings(grants=["bash(cd sub)", "bash(make)"])

    verdicts = [
        _verdict(workspace, text, settings) for text in ("make", "cd sub", "cd sub && make", "cd sub; make")
    ]
    elsewhere = [_verdict(workspace, text, settings, cwd="sub") for text in ("make", "cd sub")]

    assert (verdicts, elsewhere) == (["allow", "allow", "ask", "ask"], ["ask", "ask"])
