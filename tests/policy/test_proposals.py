import json
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import (
    CallFacts,
    Decision,
    Grant,
    PathFact,
    PolicySettings,
    Proposal,
    evaluate,
    parse_rule,
    parse_rules,
    parse_shell,
    propose,
    propose_denial,
)
from policy.proposals import COVERAGE, DENIAL_COVERAGE, RuleKind
from policy.rules import granted_rules
from policy.shell.arguments import read_command
from tools.shell_ops.bash_parser import parse_bash

_WS = PurePath("/w/proj")
_PLAIN = PolicySettings()


@cache
def _bash(command: str, mode: str = "default") -> CallFacts:
    text = parse_shell(command, parse_bash)
    return CallFacts("bash", mode, "high", "execute", _WS, command=command, shell=text)


def _file(path: str, tool: str = "write_file", **facts: Any) -> CallFacts:
    resolved = PurePath(facts.pop("resolved", _WS / path))
    fact = PathFact(path, resolved, "write", inside=resolved.is_relative_to(_WS), **facts)
    return CallFacts(tool, "default", "medium", "write", _WS, paths=(fact,))


def _granted(rules: tuple[str, ...], mode: str = "default", **lists: list[str]) -> PolicySettings:
    literal = tuple(parse_rule(text, is_literal=True) for text in rules)
    return PolicySettings(parse_rules(**lists), grants=(Grant("grant 1 (this thread)", mode, literal),))


def _rules(facts: CallFacts, settings: PolicySettings = _PLAIN) -> tuple[str, ...]:
    return propose(facts, settings, "suggested").rules


def test_a_list_of_commands_gets_one_exact_rule_for_each() -> None:
    assert propose(_bash("git push && rm -rf ./tmp; git push"), _PLAIN, "bash(git *)") == Proposal(
        ("bash(git push)", "bash(rm -rf ./tmp)"),
        coverage="This allows exactly these words in the top folder of the workspace, and nothing else.",
    )


_PATH = PathFact("a", _WS / "a", "edit", inside=True)
_CONSENT: dict[RuleKind, tuple[CallFacts, str, str]] = {
    "tool": (
        CallFacts("mcp__a__b", "default", "medium", "write", _WS),
        "mcp__a__b",
        "This allows every call of the tool, whatever its arguments.",
    ),
    "command": (
        _bash("rm -r x"),
        "",
        "This allows exactly these words in the top folder of the workspace, and nothing else.",
    ),
    "prefix": (
        _bash("npm test -q; git log; rm -r x"),
        "",
        (
            "This allows npm test and git log with any arguments in the top folder of the workspace, except "
            "options that are not known to be harmless. It also allows, exactly as written: rm -r x. "
            "What npm then does also depends on files, which may change."
        ),
    ),
    "host": (
        CallFacts("web_fetch", "default", "medium", "readonly", _WS, hosts=("h",)),
        "web_fetch(h)",
        "This allows every address on this host.",
    ),
    "change": (
        CallFacts("edit_file", "default", "medium", "write", _WS, paths=(_PATH,)),
        "",
        "This allows every change that edit_file makes to this file, not only this one.",
    ),
    "path": (
        CallFacts("grep", "default", "medium", "readonly", _WS, paths=(replace(_PATH, access="read"),)),
        "",
        "This allows every grep of this path, whatever its other arguments are.",
    ),
    "subject": (
        CallFacts("own", "default", "medium", "write", _WS, signature="x"),
        "own(x)",
        "This allows every call with this subject, whatever its other arguments are.",
    ),
}


def test_every_kind_of_rule_says_what_it_allows_beyond_the_call() -> None:
    assert set(_CONSENT) == set(get_args(RuleKind)) == set(COVERAGE)
    for kind, (facts, suggestion, sentence) in _CONSENT.items():
        proposal = propose(facts, _PLAIN, suggestion)
        said = proposal.prefix.coverage if kind == "prefix" and proposal.prefix else proposal.coverage
        assert said == sentence, kind


_DENIED: dict[RuleKind, tuple[str, str]] = {
    "tool": ("mcp__a__b", "This denies every call of the tool, whatever its arguments."),
    "command": (
        "bash(rm -r x)",
        "This denies exactly these words in every folder, also as part of a longer command.",
    ),
    "host": ("web_fetch(h)", "This denies every address on this host, for every tool."),
    "change": ("write_file(/w/a)", "This denies every change of this file, by any tool."),
    "path": ("read_file(/w/a)", "This denies reading this path, by any tool."),
    "subject": ("own(x)", "This denies every call with this subject, whatever its other arguments are."),
}


def test_every_kind_of_rule_says_what_it_denies_beyond_the_call() -> None:
    assert {*_DENIED, "prefix"} == set(DENIAL_COVERAGE)
    for kind, (rule, sentence) in _DENIED.items():
        facts, suggestion, _ = _CONSENT[kind]
        proposal = propose_denial(facts, _PLAIN, suggestion)
        assert (proposal.rules, proposal.coverage) == ((rule.replace("/w/a", str(_WS / "a")),), sentence), kind


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("rm -r x", ("bash(rm *)",)),
        ("git push -f", ("bash(git push *)",)),
        ("A=1 touch x", ("bash(touch *)",)),
        ("python x.py > y", ("bash(python *)",)),
        ("rm *.txt", ("bash(rm *)",)),
        ("cd x && rm y", None),
        ("", None),
    ],
)
def test_a_denial_is_offered_for_one_command_with_any_arguments(
    command: str, rules: tuple[str, ...] | None
) -> None:
    proposal = propose_denial(_bash(command), _PLAIN, "bash")

    assert (proposal.prefix.rules if proposal.prefix else None) == rules
    assert bool(proposal.rules) == (rules is not None) != bool(proposal.objection)


_LABELLED = tuple(
    str(case["args"]["command"])
    for file in sorted(Path(__file__).with_name("labelled").glob("*.jsonl"))
    for case in map(json.loads, file.read_text().splitlines())
    if case["tool"] == "bash" and isinstance(case["args"].get("command"), str)
)
_SCRIPT_ARGUMENTS = (
    "-C /tmp", "--prefix=../x", "--prefi /tmp", "--script-shell=/tmp/x", "--node-options=--require=/tmp/x",
    "--userconfig=/tmp/x", "-- --config=/tmp/x", "-- --require /tmp/x.js",
)  # fmt: skip
_HARMFUL_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "cargo": (
        "--config=build.rustc=/tmp/x", "--conf build.rustc=x", "--manifest-path=../Cargo.toml", "-Zscript",
        "-C /tmp",
        "--target-dir=/tmp/x", "-- --logfile=x",
    ),
    "git": ("--output=x", "--outp x", "--ext-diff", "--textconv"),
    "go": ("-exec /tmp/x", "-exec=/tmp/x", "--toolexec=/tmp/x", "-vettool=x", "-o=x", "-o x", "-overlay x"),
    "npm": _SCRIPT_ARGUMENTS,
    "pnpm": _SCRIPT_ARGUMENTS,
    "ruff": ("--output-file=x", "--config x.toml"),
    "yarn": (*_SCRIPT_ARGUMENTS, "--cwd ../x"),
}  # fmt: skip
"""Arguments by which a program would write elsewhere, or run what the project does not say."""
_HARMFUL = (
    "rm -rf x", "sudo ls", "git push", "git push --force", "git clean -fdx", "git reset --hard", "git checkout .",
    "git -c core.pager=x status", "npm install x", "npm exec x", "npm run", "npx x", "cargo install x", "cargo run",
    "cargo publish", "go run x.go", "go get x", "go generate", "curl x", "bash -c ls", "python x.py",
    "env git status",
    "make test", "xargs git status", "git bisect run x", "git submodule foreach ls", "git fetch", "git pull",
    "npm test | sh", "git log > x", "A=1 npm test", "./npm test",
)  # fmt: skip


_PARTLY_HARMFUL = ("git commit && rm x", "git status; curl x")


def _prefix(command: str) -> tuple[str, ...]:
    found = propose(_bash(command), _PLAIN, "bash").prefix
    return found.prefixes if found else ()


def _given(prefixes: tuple[str, ...]) -> PolicySettings:
    rules = granted_rules(prefixes, (), ".", prefixes)
    return PolicySettings(grants=(Grant("grant 1 (this thread)", "default", rules),))


@pytest.mark.slow
def test_what_an_offered_beginning_covers_is_harmless() -> None:
    commands = tuple(dict.fromkeys(_LABELLED))
    calls = {command: _bash(command) for command in (*commands, *_HARMFUL, *_PARTLY_HARMFUL, *_OFFERED)}
    offered = {one for command in (*commands, *_OFFERED) for one in _prefix(command)}
    assert len(commands) > 1_000
    assert len(offered) >= len(_OFFERED)
    # A grant only ever allows more: what all of them together do not allow, none of them allows.
    granted = _given(tuple(sorted(offered)))
    allowed = {command for command, facts in calls.items() if evaluate(facts, granted).verdict == "allow"}
    assert allowed >= set(_OFFERED)
    assert not allowed & {*_HARMFUL, *_PARTLY_HARMFUL}
    for command in allowed:
        facts = calls[command]
        assert facts.shell is not None
        effects = {read_command(simple.words).row.effect for simple in facts.shell.commands}
        assert effects <= {"", "writes", "script"}, command
    for words in (prefix[5:-3] for prefix in offered):
        for argument in _HARMFUL_ARGUMENTS[words.partition(" ")[0]]:
            assert evaluate(_bash(f"{words} {argument}"), granted).verdict == "ask", (words, argument)


_OFFERED = {
    "npm test -- --watch=false": ("bash(npm test *)",),
    "npm run lint -- --fix": ("bash(npm run lint *)",),
    "yarn test": ("bash(yarn test *)",),
    "cargo build --release": ("bash(cargo build *)",),
    "cargo test": ("bash(cargo test *)",),
    "go test ./...": ("bash(go test *)",),
    "git status -s": ("bash(git status *)",),
    "git add *.py": ("bash(git add *)",),
    "git commit -m x": ("bash(git commit *)",),
    "ruff check .": ("bash(ruff check *)",),
    "git diff && git log -3": ("bash(git diff *)", "bash(git log *)"),
}


@pytest.mark.parametrize(("command", "prefixes"), _OFFERED.items())
def test_a_beginning_is_offered(command: str, prefixes: tuple[str, ...]) -> None:
    assert _prefix(command) == prefixes
    words = [prefix[5:-3] for prefix in prefixes]
    for arguments, verdict in (("more of it", "allow"), ("more --of it", "ask")):
        texts = [f"{one} {arguments}" for one in words]
        assert [evaluate(_bash(text), _given(prefixes)).verdict for text in texts] == [verdict] * len(words)


@pytest.mark.parametrize(
    "command",
    [
        *_HARMFUL, "ls -l", "cat x", "rm x", "git log --output=x", "npm test --prefix /tmp", "go build -o x",
        "cargo build --config=x", "npm run $x", "npm run 'a b'", "npm test | sh", "mytool build", "docker build .",
        "git status $(ls)", "git status > x", "npm test; sudo ls", "cat *; git status",
    ],
)  # fmt: skip
def test_no_beginning_is_offered(command: str) -> None:
    assert _prefix(command) == ()


def test_a_beginning_holds_only_in_its_folder_and_without_writing_a_file() -> None:
    granted = _given(_prefix("git status -s"))
    elsewhere = replace(_bash("git status"), cwd=_WS / "sub")

    calls = (_bash("git status -b"), elsewhere, _bash("git status > x"), _bash("git statusx"), _bash("git", "plan"))

    assert [evaluate(facts, granted).verdict for facts in calls] == ["allow", "ask", "ask", "ask", "deny"]


def test_a_star_in_a_rule_is_no_wildcard() -> None:
    rules = _rules(_bash("git add '*'"))

    assert rules == ("bash(git add '*')",)
    verdicts = [
        evaluate(_bash(text), _granted(rules)).verdict for text in ("git add \\*", "git add x", "git add *")
    ]
    assert verdicts == ["allow", "ask", "ask"]


@pytest.mark.parametrize(
    "command", ["rm a b", "rm 'a b'", "rm a 'b'", "'rm' a b c", "A=1 rm a", "git commit -m 'x y'"]
)
@pytest.mark.parametrize(
    "other", ["rm a b", "rm 'a b'", "'rm a b'", "rm a b c", "A=1 rm a", "rm a", "B=1 A=1 rm a"]
)
def test_a_rule_covers_the_same_words_and_no_others(command: str, other: str) -> None:
    granted = _granted(_rules(_bash(command)))

    verdict = evaluate(_bash(other), granted).verdict

    assert verdict == ("allow" if shlex.split(other) == shlex.split(command) else "ask")


@given(
    st.text(alphabet="abg -*'\"\\&;|()$`<>#~=\n", max_size=24),
    st.text(alphabet="abg -*'\"\\&;|()<>\n", max_size=24),
)
def test_what_is_proposed_covers_the_call_and_no_other_command_line(command: str, other: str) -> None:
    rules = _rules(_bash(command))
    if not rules:
        return
    granted = _granted(rules)

    assert evaluate(_bash(command), granted).verdict == "allow"
    if evaluate(_bash(other), granted).verdict == "allow":
        exact = {tuple(shlex.split(rule[5:-1])) for rule in rules}
        again = {tuple(shlex.split(rule[5:-1])) for rule in _rules(_bash(other))}
        assert again <= exact


_ALSO_DEPENDS = "What {} then does also depends on files, which may change."
_IS_IN = "What {} then does is in {}, which may change."
_INPUT = "The input may then be different, too."
_RERUN = {
    "python3 x.py": _IS_IN.format("python3", "x.py"),
    "/usr/bin/python3.11 ./x.py -v": _IS_IN.format("python3.11", "./x.py"),
    "python3 -m pytest -q": _IS_IN.format("python3", "the module pytest and the files that it loads"),
    "python3 -u x.py": _ALSO_DEPENDS.format("python3"),
    "python3 -c 'print(1)'": _ALSO_DEPENDS.format("python3"),
    "A=1 node x.js": _IS_IN.format("node", "x.js"),
    "node --test": _ALSO_DEPENDS.format("node"),
    "perl -pi -e s/a/b/ x": _ALSO_DEPENDS.format("perl"),
    "bash script.sh": _IS_IN.format("bash", "script.sh"),
    "bash -lc 'npm test && make'": _ALSO_DEPENDS.format("bash"),
    ". ./x": _IS_IN.format(".", "./x"),
    "timeout 5 env A=1 python3 x.py": _IS_IN.format("python3", "x.py"),
    "strace ls": _ALSO_DEPENDS.format("strace"),
    "npx jest": _ALSO_DEPENDS.format("npx"),
    "uv run pytest": _ALSO_DEPENDS.format("uv"),
    "make": _ALSO_DEPENDS.format("make"),
    "npm test": _ALSO_DEPENDS.format("npm"),
    "./run.sh": "What it then does is in ./run.sh, which may change.",
    "ts-node x.ts": _ALSO_DEPENDS.format("ts-node"),
    "fakeroot make": _ALSO_DEPENDS.format("fakeroot"),
    "script -c 'rm x' y": _ALSO_DEPENDS.format("script"),
    "perl -ne 1 -e 2 x": _ALSO_DEPENDS.format("perl"),
    "cat x | python3 y.py": f"{_IS_IN.format('python3', 'y.py')} {_INPUT}",
    "patch -p1 < x": _INPUT,
    "tee x <<< y": _INPUT,
}
"""Commands that run what files say, and what the consent to a rule for exactly them says of that."""


@pytest.mark.parametrize(("command", "sentence"), _RERUN.items())
def test_what_runs_a_file_gets_a_rule_for_exactly_its_words_and_says_what_may_change(
    command: str, sentence: str
) -> None:
    proposal = propose(_bash(command), _PLAIN, "bash")

    assert proposal.coverage.endswith(f"exactly these words in the top folder of the workspace. {sentence}")
    granted = _granted(proposal.rules)
    verdicts = [evaluate(_bash(one), granted).verdict for one in (command, f"{command} more", f"sudo {command}")]
    assert verdicts == ["allow", "ask", "ask"]


_NEVER = {
    "code from its input": (
        "python3", "python3 -", "python3 -i x.py", "python3 -W ignore", "python3 -m code", "python3 < x.py",
        "python3 <<< 1", "node -r ./x", "curl x | sh", "echo x | bash -s a", "bash -o pipefail", "bash /dev/stdin",
        "bash -c", "bash -c bash", "bash -c 'cat | sh'", "timeout 5 sh", "npx -p x bash", "uv run bash",
        "busybox sh", "at now", "sqlite3 x.db .read", "vim x", "git status && sh", "source /dev/fd/3",
        "env -S bash", "mksh",
        # options that take what looks like a script for their value, or read the input as well
        "python3 -ic 1", "perl -de 1", "sh -sc ls", "fish -C ls", "lua -l x", "julia -p 4", "julia -ie 1",
        "tclsh -q x", "tclsh -m x", "php -c x", "node -e 1 -i", "lua -e 1 -i", "osascript -s s", "groovy -l 1",
        "python3 -m IPython", "python3 -m sqlite3 x",
        # the input by another name
        "python3 //dev/stdin", "python3 /dev/./stdin", "python3 ../../dev/stdin", "source //dev/stdin", "make -f -",
        "make -f-", "make --file=/dev/stdin", "uv run -", "cmake -P -",
        # what starts a shell where no command follows
        "npx", "npx -y", "npm exec", "npx -c ls", "script", "script -q x", "unshare -r", "chroot x", "fakeroot",
        "setarch x86_64", "nix-shell", "poetry shell", "nix develop", "screen", "tmux new",
        # interpreters without a row in the table
        "ipython", "ts-node", "npx tsx", "uvx ipython", "swipl x", "iex x",
        # scripts of sed that may run the input
        "sed e", "sed 's/a/b/e' x", "sed -i -f - x", "sed -f x.sed y",
    ),
    "arguments from its input": ("xargs rm", "nice xargs rm", "parallel rm"),
    "may change": ("find . -delete", "fd -x rm"),
    "is computed": (
        "bash -c 'rm $x'", "sh -c 'rm *'", "eval 'rm $x'", "trap 'rm $x' EXIT", "watch 'ls > x'",
        "env -Sbash",
    ),
    "another user": (
        "sudo ls", "A=1 sudo ls", "su -c ls", "git status && sudo ls", "bash -c 'sudo ls'", "ssh host ls",
        "docker run x", "kubectl exec x ls", "systemd-run ls",
    ),
    "No rule can allow": ('bash -c "$x"', "python3 $x", "python3 $(cat x)", "python3 *.py", "$x y.py"),
}  # fmt: skip


def test_no_rule_is_made_of_words_that_do_not_say_what_runs() -> None:
    for reason, commands in _NEVER.items():
        for command in commands:
            proposal = propose(_bash(command), _PLAIN, "bash")
            assert (proposal.rules, proposal.prefix, reason in proposal.objection) == ((), None, True), command


@pytest.mark.parametrize(
    "command",
    ["ls $(rm x)", "ls `rm x`", "ls > f", "echo x >> f", "ls $HOME", "ls *", "for x in a; do ls; done", "", "'"],
)
def test_no_rule_is_made_of_what_could_be_something_else_next_time(command: str) -> None:
    proposal = propose(_bash(command), _PLAIN, "bash")

    assert (proposal.rules, proposal.objection != "") == ((), True)


def test_no_rule_is_made_where_it_would_change_nothing() -> None:
    asked = PolicySettings(parse_rules(ask=["bash(git *)"]))

    assert propose(_bash("git push"), asked, "bash") == Proposal(
        (), "A rule would not stop it from asking. The rule 'bash(git *)' requires approval."
    )
    assert propose(_file(".env"), _PLAIN, "")[0] == ()


def test_a_file_gets_a_rule_for_exactly_itself_under_its_resolved_path() -> None:
    rules = _rules(_file("a*.py"))

    assert rules == ("write_file(/w/proj/a*.py)",)
    granted = _granted(rules)
    asked = [
        _file("a*.py"),
        _file("./x/../a*.py", resolved="/w/proj/a*.py"),
        _file("ab.py"),
        _file("a*.py", "edit_file"),
    ]
    assert [evaluate(facts, granted).verdict for facts in asked] == ["allow", "allow", "ask", "ask"]


def test_a_call_without_command_and_path_gets_the_rule_of_its_tool() -> None:
    facts = CallFacts("web_fetch", "default", "medium", "execute", _WS, signature="docs.python.org")

    rules = propose(facts, _PLAIN, "web_fetch(docs.python.org)").rules

    assert rules == ("web_fetch(docs.python.org)",)
    aliases = [replace(facts, signature=host) for host in ("docs.python.org", "python.org", "docsxpython.org")]
    assert [evaluate(one, _granted(rules)).verdict for one in aliases] == ["allow", "ask", "ask"]


def test_a_grant_is_named_by_what_it_allows() -> None:
    granted = _granted(("bash(git status)",))

    assert evaluate(_bash("git status"), granted) == Decision(
        "allow", "grant 1 (this thread)", "Always allowed by grant 1 (this thread): 'bash(git status)'."
    )


def test_a_grant_and_a_rule_together_cover_a_list() -> None:
    granted = _granted(("bash(rm x)",), allow=["bash(git *)"])

    assert evaluate(_bash("git status && rm x"), granted).rule == "grant 1 (this thread)"
    assert evaluate(_bash("git status"), granted).rule == "allow bash(git *)"


@pytest.mark.parametrize(
    ("mode", "given_in", "lists", "verdict"),
    [
        ("default", "acceptEdits", {}, "ask"),
        ("acceptEdits", "default", {}, "allow"),
        ("plan", "default", {}, "deny"),
        ("dontAsk", "default", {}, "deny"),
        ("default", "default", {"deny": ["bash(rm *)"]}, "deny"),
        ("default", "default", {"ask": ["bash(rm *)"]}, "ask"),
    ],
)
def test_a_grant_never_goes_before_what_is_stricter(
    mode: str, given_in: str, lists: dict[str, list[str]], verdict: str
) -> None:
    assert evaluate(_bash("rm x", mode), _granted(("bash(rm x)",), given_in, **lists)).verdict == verdict


def test_a_grant_for_a_command_lets_it_write_no_file() -> None:
    granted = _granted(("bash(echo x)",))

    verdicts = [
        evaluate(_bash(text), granted).verdict
        for text in ("echo x", "echo x >/dev/null", "echo x > a", "echo x >> a")
    ]
    assert verdicts == ["allow", "allow", "ask", "ask"]
