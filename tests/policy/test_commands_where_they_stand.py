"""Rules and grants cover a command in the folder and in the shell in which it stands, not the words alone."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
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
    *,
    allow: Sequence[str] = (),
    grants: Sequence[str] = (),
    folder: str = ".",
    strict: Mapping[str, Sequence[str]] | None = None,
) -> PolicySettings:
    """The rules of one list, and exact rules that were granted for a call that started in a folder."""
    granted = Grant("grant 1", "default", granted_rules(grants, (), folder))
    return PolicySettings(parse_rules(allow=allow, **(strict or {})), grants=(granted,) if grants else ())


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

    wrong, too_strict = [], []
    # All about a command at once: only the last few hundred are known without being parsed again.
    for command, inside in rows:
        for allow, mode in product(lists, _ASKING_MODES):
            if not inside and _verdict(workspace, command, _settings(allow=allow), mode) == "allow":
                wrong.append((command, allow[0], mode))
        # What an earlier command may make a link in the place of a missing folder is not known.
        is_known = inside and command != "make && cd nosuch && make"
        if is_known and _verdict(workspace, command, _settings(allow=["bash"])) != "allow":
            too_strict.append(command)

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


def test_the_first_words_are_allowed_only_in_the_folder_that_a_cd_led_to(workspace: Path) -> None:
    moves = _settings(allow=["bash(cd*)"])
    prefix = propose(_facts(workspace, "cd sub && npm test -q"), moves, "").prefix
    assert prefix is not None
    assert (prefix.rules, prefix.folders) == (("bash(cd sub)", "bash(npm test *)"), ((".",), ("sub",)))
    assert "npm test with any arguments, each in the folders shown with it, except" in prefix.coverage
    rules = granted_rules(prefix.rules, prefix.folders, ".", prefix.prefixes)
    settings = replace(moves, grants=(Grant("grant 1", "default", rules),))

    texts = (
        "cd sub && npm test",
        "cd sub && npm test -- -w",
        "npm test",
        "cd other && npm test",
        "cd sub; npm test",
    )

    assert [_verdict(workspace, text, settings) for text in texts] == ["allow", "allow", "ask", "ask", "ask"]


def test_a_grant_of_an_earlier_version_covers_its_commands_in_the_folder_in_which_the_text_began(
    workspace: Path,
) -> None:
    settings = _settings(grants=["bash(cd sub)", "bash(make)"])

    verdicts = [
        _verdict(workspace, text, settings) for text in ("make", "cd sub", "cd sub && make", "cd sub; make")
    ]
    elsewhere = [_verdict(workspace, text, settings, cwd="sub") for text in ("make", "cd sub")]

    assert (verdicts, elsewhere) == (["allow", "allow", "ask", "ask"], ["ask", "ask"])


# Built-ins

_CHANGES = (
    "export PATH=.", "export -n PATH", "declare -x A=1", "typeset -x A=1", "readonly A=1", "alias ls=rm",
    "unalias ls", "hash -p ./ls ls", "enable -n echo", "read A", "mapfile A", "readarray A", "getopts a A",
    "printf -v A x", "set -- x", "set -e", "shopt -s nullglob", "unset PATH", "trap ls EXIT", "source ./env",
    ". ./env", "eval true", "exec 3<a", "PATH=.", "A+=x", "A=1 B=2", "builtin export A=1", "command export A=1",
    "command -p alias ls=rm", "X=1 export A=1", "wait -p A", "f() { true; }",
)  # fmt: skip
_FOLLOWED = (
    "{}; git status", "{} && make", "{} || make", "{}\nmake", "if true; then {}; fi; make", "({}; make)",
    "{{ {}; }}; make", "cd sub; {}; make", "while true; do make; {}; done", "true | {{ {}; make; }}",
    "if {}; then make; fi", "{}; ls | make", "{}; (make)", "({}; ls) && make", "{}; make &", "! {}; make",
)  # fmt: skip
_NOT_FOLLOWED = ("make; {}", "({}); make", "{} | make", "{} & make", "make && {}", "make | {}", "(make; {}); ls")


def _lists_for(facts: CallFacts) -> dict[str, PolicySettings]:
    """For each kind of rule settings by which it covers every simple command of a call."""
    commands = facts.shell.commands if facts.shell else ()
    exact = tuple(f"bash({shlex.join(one.words)})" for one in commands)
    return {
        "bare": _settings(allow=["bash"]),
        "any": _settings(allow=["bash(*)"]),
        "star": _settings(allow=[f"bash({one.words[0]}*)" for one in commands]),
        "exact": _settings(allow=[f"bash({one.text})" for one in commands]),
        "grant": _settings(grants=exact),
    }


def test_a_builtin_that_changes_what_follows_is_covered_by_no_rule(workspace: Path) -> None:
    (workspace / "env").write_text("")
    rows = [form.format(change) for change, form in product(_CHANGES, _FOLLOWED)]

    allowed = [
        (command, kind, mode)
        for command in rows
        for kind, settings in _lists_for(_facts(workspace, command)).items()
        for mode in _ASKING_MODES
        if _verdict(workspace, command, settings, mode) == "allow"
    ]

    assert len(rows) > 500
    assert allowed == []


def test_a_builtin_after_which_nothing_is_run_in_its_shell_may_be_covered(workspace: Path) -> None:
    changes = [change for change in _CHANGES if not change.startswith("f()")]
    rows = [form.format(change) for change, form in product(changes, _NOT_FOLLOWED)]

    asked = [command for command in rows if _verdict(workspace, command, _settings(allow=["bash"])) != "allow"]

    assert len(rows) > 200
    assert asked == []


def test_the_reason_names_the_builtin(workspace: Path) -> None:
    def reason(command: str) -> str:
        facts = _facts(workspace, command)
        return evaluate(facts, _settings(allow=["bash"])).reason

    assert "export changes how the shell reads the commands after it" in reason("export PATH=.; git status")
    assert "setting PATH changes" in reason("PATH=. ; git status")


# Links

_LINKERS = (
    "ln -s .git q", "ln -sfn .git out", "mv .git out/x", "cp -r a q", "cp -a .git q", "tar xf a.tar", "unzip a.zip",
    "git checkout b", "git pull", "git stash pop", "unknown-program", "make", "timeout 5 ln -s .git q",
    "env A=1 ln -s .git q", "rsync -a b/ q", "install a q", "python3 x.py", "mkdir d && mv .git d/x",
)  # fmt: skip
_WRITES = (
    "{}; echo x > q/config", "{} && echo x > out/a", "{} && ls >> new", "{}\necho x > d/x/config",
    "{} && (echo x > q/config)", "{} | echo x > q/config", "{} & echo x > q/config", "(sleep 1; echo > q/a) & {}",
    "(sleep 1; echo > q/a) | {}", "while true; do echo x > q/a; {}; done", "{} && {{ echo x; }} > q/config",
    "if {}; then echo x > q/config; fi",
)  # fmt: skip
_KEEP = (
    "mkdir -p out", "mkdir -p new/deep", "touch q", "cat a", "git status", "git log -n 1", "rm -f q", "cp a q",
    "cp -f a q", "echo x", "true", "test -d out", "cd out", "grep x a", "timeout 5 cat a", "ls | wc -l",
    "chmod +x a",
)  # fmt: skip


def test_a_redirection_after_what_may_have_made_a_link_has_an_unknown_target(workspace: Path) -> None:
    rows = [form.format(linker) for linker, form in product(_LINKERS, _WRITES)]

    allowed = [
        (command, kind, mode)
        for command, mode in product(rows, _ASKING_MODES)
        for kind, settings in _lists_for(_facts(workspace, command)).items()
        if _verdict(workspace, command, settings, mode) == "allow"
    ]
    closed = {
        kind: _settings(allow=["bash"], strict={kind: ["write_file(elsewhere/**)"]}) for kind in ("deny", "ask")
    }
    unasked = [
        (command, kind, mode)
        for command, (kind, settings), mode in product(rows, closed.items(), ("default", "bypassPermissions"))
        if _verdict(workspace, command, settings, mode) == "allow" and (kind, mode) != ("ask", "bypassPermissions")
    ]
    low = PolicySettings(risk={"bash": "low"})
    at_low_risk = [command for command in rows if _verdict(workspace, command, low) == "allow"]

    assert len(rows) > 200
    assert (allowed, unasked, at_low_risk) == ([], [], [])


def test_a_redirection_after_what_makes_no_link_is_covered(workspace: Path) -> None:
    forms = ("{} && echo x > new/a", "{}; ls > b", "{} && git log >> out/log")
    rows = [form.format(command) for command, form in product(_KEEP, forms)]

    asked = [
        command
        for command in rows
        if not command.startswith("cd out") and _verdict(workspace, command, _settings(allow=["bash"])) != "allow"
    ]

    assert len(rows) > 50
    assert asked == []


@pytest.mark.parametrize(
    ("command", "verdict"),
    [
        *((f"{one}; {write}", "ask") for one in _LINKERS[:6] for write in ("cp a q/config", "tee q/config")),
        ("ln -s .git q && mytool q/config", "ask"), ("ln -s .git q && mytool q", "ask"),
        ("ln -s b q && rm other/x", "ask"), ("tar xf a.tar && rm -rf q/hooks", "ask"),
        ("tar xf a.tar && rm a.tar", "allow"), ("git pull && make test", "allow"), ("mv a c && git add c", "allow"),
        ("git checkout b && pytest tests/unit", "allow"), ("mkdir -p out && cp a out/b", "allow"),
        ("cp a out/b && rm -rf sub/deep", "allow"), ("ln -s b q && cat q/x", "allow"),
    ],
)  # fmt: skip
def test_a_star_stands_for_no_path_that_an_earlier_command_may_lead_elsewhere(
    workspace: Path, command: str, verdict: str
) -> None:
    stars = _lists_for(_facts(workspace, command))["star"]

    assert _verdict(workspace, command, stars) == verdict


# Spellings

_COMPOSED, _DECOMPOSED = "caf\u00e9", "cafe\u0301"
_SPELLINGS = (_COMPOSED, _DECOMPOSED)
_ACCESSES = (
    ("read_file({}/**)", "cat {}/a"), ("read_file({}/**)", "cat ./{}/a"), ("read_file({}/**)", "cat {}*/a"),
    ("read_file({}/**)", "grep -r x ."), ("read_file({}/a)", "cat < {}/a"), ("read_file({}/**)", "cat c*/a"),
    ("read_file({}/**)", "cat caf?/a"), ("read_file({}/**)", "cat caf??/a"), ("read_file(**/{}/*)", "cat {}/a"),
    ("write_file({}/**)", "echo x > {}/a"), ("write_file({}/**)", "tee {}/a"), ("write_file({}/**)", "rm -rf {}"),
    ("bash({} *)", "{} x"), ("bash(make {}*)", "make {}"), ("bash({} *)", "timeout 5 {} x"),
    ("web_fetch({}.example)", "curl https://{}.example/x"), ("web_fetch(*.{}.example)", "curl a.{}.example"),
    ("web_fetch({}.example)", "curl https://xn--caf-dma.example"),
    ("web_fetch(xn--caf-dma.example)", "curl {}.example"),
)  # fmt: skip


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_rule_that_forbids_holds_for_every_spelling_of_a_name(workspace: Path, kind: str, mode: str) -> None:
    for spelling in _SPELLINGS:
        (workspace / spelling).mkdir()
    rows = [
        (rule.format(one), command.format(other), one)
        for (rule, command), one, other in product(_ACCESSES, _SPELLINGS, _SPELLINGS)
    ]

    allowed = [
        (rule, command)
        for rule, command, _ in rows
        if _verdict(workspace, command, _settings(allow=["bash"], strict={kind: [rule]}), mode) == "allow"
        and (kind, mode) != ("ask", "bypassPermissions")
    ]

    assert len(rows) > 70
    assert allowed == []


def test_a_rule_that_allows_holds_for_the_very_bytes(workspace: Path) -> None:
    verdicts = [
        _verdict(workspace, f"make {other}", _settings(allow=[f"bash(make {one})"]))
        for one, other in product(_SPELLINGS, _SPELLINGS)
    ]

    assert verdicts == ["allow", "ask", "ask", "allow"]


def test_a_link_in_another_spelling_leads_to_what_a_rule_names(workspace: Path) -> None:
    (workspace / _DECOMPOSED).symlink_to("sub")

    assert (
        _verdict(workspace, "cat sub/x", _settings(allow=["bash"], strict={"deny": [f"read_file({_COMPOSED}/**)"]}))
        == "ask"
    )
