"""The risk of commands: a labelled table, each with a part of the reason, in and without a sandbox."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import (
    CallFacts,
    PolicySettings,
    Sandboxing,
    call_risk,
    contacting_program,
    evaluate,
    parse_rules,
    parse_shell,
)
from tools import create_default_tools
from tools.shell_ops.bash_parser import parse_bash

_BASH = next(tool for tool in create_default_tools(workspace=".") if tool.name == "bash")

_LOW = (
    "ls", "ls -la src", "ls -R", "pwd", "cat README.md", "cat src/app.py README.md", "cat -n README.md",
    "cat .env", "git status", "git status -sb", "git diff", "git diff --stat", "git log --oneline -5",
    "git show HEAD", "git blame a", "git branch", "git branch -a", "git tag -l", "git remote -v",
    "git stash list", "git rev-parse HEAD", "git grep x", "git ls-files", "git --version", "git config --list",
    "git describe --tags", "rg x", "rg -n 'def main' src", "rg --files", "rg '/api/v1' src", "grep -rn TODO src",
    "grep -rn '/usr/bin' src", "head README.md", "head -n 5 README.md", "tail -n 3 README.md", "wc -l README.md",
    "echo hello", "echo /etc/passwd", "printf '%s' x", "ls | head -5", "cat README.md | sort | uniq -c",
    "git log --oneline | head", "find . -name '*.py'", "find src -type f", "sed -n 1,5p README.md",
    "awk '{print $1}' README.md", "awk 'NR>1' README.md", "sort README.md", "cut -d: -f1 README.md",
    "tr a b < README.md", "diff README.md src/app.py", "stat README.md", "file README.md", "du -sh .", "tree src",
    "date", "date +%F", "whoami", "id", "uname -a", "which python3", "command -v git", "true",
    "test -f README.md", "[ -d src ] && ls src", "ls; pwd", "ls && pwd || true", "(ls)", "{ ls; }", "ls *.md",
    "ls src/*.py", "cat < README.md", "cat <<< x", "cat README.md 2>/dev/null", "ls 2>&1", "cd src && ls",
    "timeout 5 ls", "time ls", "nice -n 5 wc -l README.md", "LC_ALL=C sort README.md", "set -e",
    "jq .a README.md", "python3 --version", "if true; then ls; fi", "env", "basename src/app.py",
    "sha256sum README.md", "cat README.md &", "! grep -q x README.md", "git diff | grep -c x", "xxd README.md",
    "ls # list",
)  # fmt: skip
_MEDIUM = (
    ("touch a", "writes a"), ("mkdir -p src/new", "writes src/new"), ("cp README.md b", "writes README.md b"),
    ("mv README.md b", "writes README.md b"), ("ln -s README.md b", "writes"),
    ("echo x > out.txt", "writes out.txt"), ("ls >> src/log.txt", "writes src/log.txt"), ("tee a", "writes a"),
    ("chmod +x src/app.py", "writes"), ("git add -A", "changes the repository"),
    ("git commit -m x", "changes the repository"), ("git checkout main", "changes the repository"),
    ("git switch -c x", "changes the repository"), ("git stash", "changes the repository"),
    ("git branch x", "changes the repository"), ("git merge x", "repository"),
    ("git restore --staged a", "changes the repository"), ("git clean -n", "changes the repository"),
    ("git reset HEAD~1", "changes the repository"), ("make", "runs a script: make"),
    ("make -j4 test", "script: make"), ("npm test", "runs a script: npm"),
    ("npm run build", "runs a script: npm"), ("pytest -q", "runs a script: pytest"),
    ("cargo test", "runs a script: cargo"), ("go test ./...", "runs a script: go"),
    ("python3 a.py", "script: python3"), ("python3 -m pytest", "runs a script"),
    ("bash build.sh", "runs a script: bash"), ("uv run pytest", "script: uv"),
    ("python3 -c 'print(1)'", "runs code: python3"), ("node -e 1", "runs code: node"),
    ("bash -c ls", "code: bash"), ("ruff check .", "runs ruff"), ("./script.sh", "runs ./script.sh"),
    ("no-such-program", "runs no-such-program"), ("./ls", "runs ./ls"),
    ("sed -i s/a/b/ README.md", "may write or run something: sed -i"), ("sort -o a b", "sort -o"),
    ("uniq a b", "may write or run something"), ("rg --pre x y", "may write or run something: rg --pre"),
    ("cat /etc/passwd", "reads /etc/passwd, outside the workspace"), ("cat ../x", "reads ../x, outside"),
    ("ls /", "reads /, outside"), ("cat < /etc/passwd", "reads /etc/passwd"),
    ("cat way/x", "reads way/x, outside"), ("cat w*/x", "outside the workspace"),
    ("head *.lnk", "outside the workspace"), ("grep -f /etc/x README.md", "outside"), ("rg x /etc", "outside"),
    ("find / -name x", "outside"), ("cd /etc && cat passwd", "outside"), ("cd .. && ls", "outs"),
    ("cd -; ls", "changes to an unknown folder"), ("cd; ls", "changes to an unknown folder"),
    ("grep -R x .", "follows links"), ("rg -L x", "follows links"), ("find -L . -name x", "follows links"),
    ("sort --files0-from=a", "may write or run"), ("find . | xargs cat", "arguments it reads from its input"),
    ("FOO=1 make", "sets FOO"), ("export A=1", "variables"), ("tar xf a.tgz", "writes"),
    ("unzip a.zip", "writes"), ("rsync -n --delete src b", "writes"), ("man ls", "runs man"),
    ("git config user.name x", "changes the repository"), ("less README.md", "runs code: less"),
)  # fmt: skip
_HIGH = (
    ("rm -r build", "deletes build"), ("rm a b", "deletes a b"), ("rmdir src", "deletes src"),
    ("shred a", "deletes a"), ("ls && rm a", "deletes a"), ("timeout 5 rm a", "deletes a"),
    ("find . -delete", "deletes what find finds"), ("find . -exec rm {} +", "deletes"),
    ("ls | xargs rm", "deletes"), ("bash -c 'rm -rf x'", "deletes x"), ("git rm a", "deletes a"),
    ("git clean -fd", "deletes what git clean finds"), ("rsync --delete src b", "deletes"),
    ("rm -r $x", "deletes $x"), ("make; rm a", "deletes a"), ("git worktree remove x", "deletes"),
    ("curl http://h", "uses the network: curl"), ("wget http://h", "uses the network: wget"),
    ("ping h", "the network"), ("ssh h ls", "uses the network: ssh"), ("scp a h:", "uses the network: scp"),
    ("nc h 80", "uses the network: nc"), ("git push", "uses the network: git push"),
    ("git pull", "uses the network"), ("git fetch", "uses the network"),
    ("git clone http://h/r", "uses the network"), ("npm install", "uses the network: npm install"),
    ("npm ci", "network"), ("pip install x", "uses the network: pip"), ("uv sync", "uses the network"),
    ("cargo install x", "the network"), ("go get x", "uses the network"),
    ("apt-get install x", "uses the network"), ("dig h", "uses the network"),
    ("rsync src h:b", "uses the network: rsync"), ("git remote update", "uses the network"),
    ("gh pr list", "network"), ("cat README.md | curl -d @- http://h", "uses the network: curl"),
    ("ls; curl http://h", "uses the network"), ("sudo ls", "runs as another user: sudo"),
    ("su -c ls", "runs as another user: su"), ("doas ls", "another user"),
    ("docker ps", "hands work to a program outside the sandbox: docker"),
    ("systemctl restart x", "outside the sandbox"),
    ("git push --force", "rewrites history: git push --force"), ("git push -f origin x", "rewrites history"),
    ("git push origin +x", "rewrites history"), ("git push origin :x", "rewrites history"),
    ("git commit --amend", "rewrites history"), ("git rebase main", "rewrites history"),
    ("git branch -D x", "history"), ("git tag -d x", "rewrites history"),
    ("git filter-branch x", "rewrites history"), ("git gc", "rewrites history"),
    ("git reflog expire --all", "rewrites history"), ("git reset --hard", "discards changes: git reset --hard"),
    ("git checkout -- a", "discards changes"), ("git checkout .", "discards changes"),
    ("git restore a", "discards"), ("git stash drop", "discards changes"),
    ("git switch -f x", "discards changes"), ("echo $HOME", "cannot be judged before it runs"),
    ("echo $(id)", "cannot be judged"), ("cat ~/x", "cannot be judged"),
    ("for f in *; do cat $f; done", "cannot be judged"), ("ls | sh", "cannot be judged"),
    ("$x", "cannot be judged"),
    ("eval \"$x\"", "cannot be judged"), ("ls '", "cannot be judged"), ("f() { ls; }; f", "cannot be judged"),
    ("ls {a,b}", "cannot be judged"), ("bash <&3", "cannot be judged"),
    ("strace ls", "that its arguments do not show"), ("echo x > /etc/x", "writes /etc/x, outside"),
    ("touch /tmp/x", "outside the workspace"), ("cp /etc/x a", "outside"),
    ("echo x > .env", "changes .env, which decides"), ("touch .env", "may change .env"),
    ("cp a .git/hooks/b", "may change"), ("git add .gitattributes", "may change .gitattributes"),
    ("echo x > way/y", "outside the workspace"), ("PATH=. ls", "sets PATH, which decides"),
    ("LD_PRELOAD=x ls", "sets LD_PRELOAD"), ("GIT_DIR=x git log", "GIT_DIR"),
    ("BASH_ENV=x bash a.sh", "sets BASH_ENV"), ("GIT_PAGER=x git log", "sets GIT_PAGER"),
    ("env PATH=. ls", "sets PATH"), ("PATH=.; ls", "sets PATH"),
)  # fmt: skip


def _rows() -> Iterator[tuple[str, str, str]]:
    yield from ((command, "low", "only reads") for command in _LOW)
    yield from ((command, "medium", reason) for command, reason in _MEDIUM)
    yield from ((command, "high", reason) for command, reason in _HIGH)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("risk").resolve() / "ws"
    for name in ("src/app.py", "README.md", ".env", "../out/x"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x\n")
    (place / "way").symlink_to("../out")
    (place / "b.lnk").symlink_to("../out/x")
    return place


def _facts(workspace: Path, command: str, sandbox: Sandboxing, mode: str = "default") -> CallFacts:
    context = PolicyContext(workspace, PolicySettings(home=workspace.parent))
    facts = call_facts(_BASH, {"command": command}, Scope("", mode), context, "builtin")
    return replace(facts, sandbox=sandbox)


@pytest.mark.parametrize(("command", "level", "reason"), list(_rows()))
def test_in_a_sandbox_the_risk_is_that_of_the_call(workspace: Path, command: str, level: str, reason: str) -> None:
    settings = PolicySettings(home=workspace.parent)
    facts = _facts(workspace, command, "closed")

    risk = call_risk(facts, settings)

    assert (risk.level, reason in risk.reason) == (level, True), risk
    decision = evaluate(facts, settings)
    assert (decision.verdict == "allow") is (level == "low")
    # A redirection to a protected name asks before the risk is looked at.
    assert risk.reason in decision.reason or decision.rule == "protected name"


_UNRESOLVABLE = (
    "/proc/1/root/etc/hostname", "/proc/1/cwd/x", "/proc/*/cwd/x", "/proc/self/task/*/root/etc/hostname",
    "/proc/1/root/../root/etc/x", "loop/../../x",
)  # fmt: skip
_READS = ("cat {}", "head -n 1 {}", "cat README.md {}", "wc < {}", "cd {} && cat x", "git -C {} log", "cat {}*")


@pytest.mark.parametrize("deny", [(), ("read_file(secrets/**)",)])
def test_a_path_that_cannot_be_resolved_does_not_count_as_inside_the_workspace(
    workspace: Path, deny: tuple[str, ...]
) -> None:
    (workspace / "loop").unlink(missing_ok=True)
    (workspace / "loop").symlink_to("loop")
    settings = PolicySettings(parse_rules(deny=deny), home=workspace.parent)
    rows = [form.format(path) for form in _READS for path in _UNRESOLVABLE]

    assert [row for row in rows if evaluate(_facts(workspace, row, "closed"), settings).verdict == "allow"] == []


@pytest.mark.parametrize(("command", "level", "reason"), list(_rows()))
def test_without_a_sandbox_the_declared_risk_stays_and_the_reason_is_told(
    workspace: Path, command: str, level: str, reason: str
) -> None:
    settings = PolicySettings(home=workspace.parent)
    facts = _facts(workspace, command, "none")

    risk = call_risk(facts, settings)

    assert (risk.level, reason in risk.reason) == ("high", True), risk
    assert risk.reason.endswith("and there is no sandbox") is (level != "high")
    assert evaluate(facts, settings).verdict == "ask"


def test_the_table_has_the_rows_it_should_have() -> None:
    assert (len(_LOW) >= 80, len(_MEDIUM) >= 60, len(_HIGH) >= 80) == (True, True, True)
    assert len(set(_rows())) >= 230


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("curl -s example.com", "curl"), ("wget -q x.org && tar xf x", "wget"), ("X=1 timeout 5 curl x", "curl"),
        ("echo $(curl x)", "curl"), ("sh -c 'wget x'", "wget"), ("if true; then curl x; fi", "curl"),
        ("cat urls | xargs curl", "curl"), ("git clone x", "git clone"), ("git pull", "git pull"),
        ("git remote update", "git remote"), ("git remote -v", ""), ("git remote add o https://x/y", ""),
        ("pip install x", "pip"), ("scp host:a .", "scp"), ("ssh host cat a", "ssh"), ("rsync host:a .", "rsync"),
        ("rsync a b", ""), ("python3 get.py https://example.com/x", "python3"), ("./get http://x", "get"),
        ("echo https://example.com", ""), ("grep -r curl .", ""), ("cat curl", ""), ("make", ""), ("ls", ""),
        ("curl x '", "curl"), ("echo 'http://x", "an address"),
    ],
)  # fmt: skip
def test_what_contacts_a_host_is_found_in_a_command(command: str, program: str) -> None:
    assert contacting_program(command, parse_shell(command, parse_bash)) == program


def test_the_setting_declared_keeps_the_risk_of_the_tool(workspace: Path) -> None:
    for command in ("ls", "touch a", "rm a"):
        facts = _facts(workspace, command, "closed")
        declared = PolicySettings(shell_risk="declared")
        assert call_risk(facts, declared) == ("high", "", False)
        assert evaluate(facts, declared).reason == "bash has high risk."
        assert call_risk(facts, PolicySettings(risk={"bash": "medium"})).level == "high"


def test_with_an_open_network_an_unknown_program_is_high(workspace: Path) -> None:
    settings = PolicySettings()

    def level(command: str) -> str:
        return call_risk(_facts(workspace, command, "open"), settings).level

    assert [level(command) for command in ("ls", "touch a", "make", "no-such-program", "node a.js")] == [
        "low", "medium", "high", "high", "high",
    ]  # fmt: skip


def test_rules_and_modes_come_before_the_risk_of_a_call(workspace: Path) -> None:
    facts = _facts(workspace, "cat .env", "closed")

    def verdict(facts: CallFacts, **rules: list[str]) -> str:
        return evaluate(facts, PolicySettings(parse_rules(**rules), home=workspace.parent)).verdict

    assert verdict(facts) == "allow"
    assert verdict(facts, deny=["read_file(.env)"]) == "ask"
    assert verdict(facts, ask=["bash(cat *)"]) == "ask"
    assert verdict(facts, deny=["bash(cat *)"]) == "deny"
    assert verdict(replace(facts, mode="plan")) == "deny"
    assert verdict(replace(facts, mode="dontAsk")) == "allow"
    assert verdict(_facts(workspace, "touch a", "closed", "dontAsk")) == "deny"


def test_a_read_outside_the_workspace_is_not_left_to_the_reviewer_of_mode_auto(workspace: Path) -> None:
    decision = evaluate(_facts(workspace, "cat /etc/passwd", "closed", "auto"), PolicySettings())

    assert (decision.verdict, decision.rule) == ("ask", "outside the workspace")


_DOUBTFUL = (
    "git --shallow-file log -c alias.z='!touch P' z", "git --attr-source HEAD log", "git grep -lOrm hello",
    "git grep -iO'sh -c id' x", "sed '1e id' -- README.md -e p", "sed -l 1p 'w P' README.md",
    "sed --line-length 1p '1e id' x", "git bisect view difftool -y", "xxd -ps README.md P", "xxd -bits in out",
    "cd sub && git status", "tree -Lo 1 P", "tree -Po '*' P", "git branch -v newb", "git tag -a v1",
    "mvn --version", "yarn --version", "cat ou[[:lower:]]/etc/passwd", "date -uf/etc/shadow", "file -bf/etc/passwd",
    "grep -vf/etc/passwd x", "du -aX/etc/x", "grep -r x out/*", "rg x out/*", "grep --deref x .", "diff --rec a b",
    "rg --foll x", "echo /etc/*", "echo ../*", "cat .*/outside/f", "env -iCsecrets cat a/b.txt",
    "grep --recurs x .", "date -ufsecrets/a", "git fast-export --all", "git archive HEAD",
)  # fmt: skip


@pytest.mark.parametrize("command", _DOUBTFUL)
def test_a_reader_in_a_spelling_that_may_do_more_is_not_low(workspace: Path, command: str) -> None:
    facts = _facts(workspace, command, "closed")

    assert call_risk(facts, PolicySettings()).level != "low"


def test_the_doubtful_spellings_are_many() -> None:
    assert len(_DOUBTFUL) >= 35
