"""What rules make of the table of programs: a row for each way in which a program does more than its name says."""

from pathlib import Path

import pytest

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts
from policy import PolicySettings, evaluate, parse_rules, parse_shell
from policy.shell.arguments import only_reads
from tools import create_default_tools
from tools.shell_ops.bash_parser import parse_bash

_BASH = next(tool for tool in create_default_tools(workspace=".") if tool.name == "bash")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("programs").resolve() / "ws"
    for name in ("secrets/a/b.txt", "src/app.py", "README.md", "pkg/deep/.env", ".git/config"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x\n")
    (place / "innocent.txt").symlink_to(".git/config")
    return place


def _decide(workspace: Path, command: str, mode: str = "default", **rules: list[str]) -> str:
    settings = PolicySettings(rules=parse_rules(**rules), home=workspace.parent)
    call = {"command": command}
    facts = call_facts(_BASH, call, Scope("", mode), PolicyContext(workspace, settings), "builtin")
    return evaluate(facts, settings).verdict


_WRITES_PROTECTED = (
    "cp x .git/hooks/pre-commit", "tee .git/config", "touch .env", "mv a .bashrc",
    "install x ../home/.ssh/authorized_keys", "ln -s x .envrc", "cp -t .git/hooks x",
    "cp --target-directory=.git/hooks x", "dd if=x of=.env", "truncate -s 0 .npmrc", "mkdir -p .vscode",
    "rm .gitattributes", "patch .mcp.json x", "gzip .env", "tee innocent.txt", "tee ./src/../.env",
    "touch pkg/deep/.env", "cp x .g*/hooks", "cp x .e*", "chmod +x .envrc", "unknown-program .env",
    "unknown-program --to=.env", "cd src && touch ../.env", "git add .env", "git mv a .envrc",
    "timeout 5 tee .env", "xargs tee .env",
)  # fmt: skip
_TAKES_A_FILE_OR_COMMAND = (
    "curl -o x http://h", "curl -sSLo x http://h", "curl --output x http://h", "curl -O http://h/x", "curl -K x",
    "curl -T x http://h", "curl -d @x http://h", "curl -F a=@x http://h", "curl --config x", "curl -D x http://h",
    "wget -O x http://h", "wget -i x", "wget -e x=y http://h", "wget --post-file=x http://h", "awk -o x",
    "awk -f x", "gawk -i inplace x", "awk 'BEGIN{system(\"x\")}'", "awk '{print > \"x\"}' a",
    "awk '{print | \"sh\"}' a", "awk 'print /;/ > \"f\"' a", "awk '/\"/ {print > \"x\"}' a",
    "awk '{a++ / 1; print \"x\" > \"f\"; b = 2 / 1}' a", "awk 'if (1) /\"/; print > \"f\"' a", "go test -exec x",
    "go test -toolexec=x", "go build -o x", "go vet -vettool=x", "make SHELL=x", "make CC=./x", "make -f x",
    "make --eval=x", "make -C ../x", "scp -S x a b", "scp -o ProxyCommand=x a h:", "sftp -b x h",
    "tar --index-file=x -tf a", "tar -cf x -T y", "tar xIf x y", "tar -I x -xf y", "tar -g x -cf y z",
    "git -c core.hooksPath=x status", "git config core.pager x", "git config --unset a", "git clone -u x y",
    "git clone -c a=b y", "git cat-file --filters a:b", "git grep -Oless x", "zip -TT x a b", "zip -T -TT x a b",
    "zip --unzip-command x a b", "tclsh <<< 'exec x'", "python3 <<< x", "ed <<< '!x'", "sqlite3 <<< .shell",
    "sort -o x y", "sort --compress-program=x y", "tree -o x", "rg --pre x y", "file -C -m x",
    "diff --output=x a b", "date -s x", "date 01010101", "find . -delete", "find . -fprint x",
    "sed -i.bak s/a/b/ x", "uniq a b", "uniq -f 1 a b", "xxd a b", "xxd -r a b", "hostname x", "shuf -o x a",
    "base64 -o x a", "jq 'import \"x\" as a; a' b", "rsync --delete a b", "rsync --delete-after a b",
    "rsync -e x a b", "rsync --log-file=x a b", "pytest -p x", "pytest -c x", "pytest --basetemp=x",
    "unknown-program -o x", "unknown-program --output x", "unknown-program --config=x",
    "unknown-program --outDir x", "unknown-program --script-shell=x", "unknown-program --any=/x",
    "unknown-program --any=http://h", "eslint --rulesdir /x --config x",
)  # fmt: skip


@pytest.mark.parametrize("command", [*_WRITES_PROTECTED, *_TAKES_A_FILE_OR_COMMAND])
def test_a_star_does_not_stand_for_what_makes_a_program_do_more(workspace: Path, command: str) -> None:
    rules = [f"bash({name} *)" for name in ("cd", "tee", command.split(maxsplit=1)[0])]

    assert parse_shell(command, parse_bash).unclear_reason == ""
    assert _decide(workspace, command, allow=rules) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cat .env", "grep x .git/config", "head innocent.txt", "git diff .env", "wc -l .npmrc",
        "diff .env .envrc", "uniq -f 1 a", "uniq --skip-fields 1 a", "sort -to a", "sort -k 1 a", "git fetch -u",
        "git rebase main", "awk 'NR>1' a", "awk '$1 > 5 {print $2}' a", "awk '{print \"a>b\"}' a",
        "awk '/a|b/ {print}' a", "awk 'a || b' a", "awk -Fi '{print}' a", "awk '{s+=$1} END{print s/NR}' a",
        "command -v git", "command -V git", "rsync -n --delete a b", "rsync --dry-run --delete-after a b",
        "git config --get user.name", "git config --list", "git commit -m 'about .env'",
        "git commit -am process.env", "curl -o /dev/null http://h", "curl -fsS http://h", "wget -qO- http://h",
        "make -j4 V=1 test", "make DEBUG=yes test", "go test -run X ./...", "tar -xzf a", "tar xzf a",
        "pytest -p no:cacheprovider -k b", "pytest --co -q", "date +%F", "date -u", "find . -name x",
        "sed -n 1p a", "printf %s .env", "rg -e x .env", "touch env", "cp a b", "mkdir -p src/x",
        "cat a | python3 run.py", "npm run build -- --watch=false", "unknown-program --dry-run --no-config x",
    ],
)  # fmt: skip
def test_a_star_stands_for_ordinary_arguments(workspace: Path, command: str) -> None:
    programs = {"cat", command.split(maxsplit=1)[0], "python3", "git"}

    assert _decide(workspace, command, allow=[f"bash({name} *)" for name in programs]) == "allow"


def test_what_a_rule_names_itself_is_allowed(workspace: Path) -> None:
    for command in ("touch .env", "cp a .git/hooks/x", "curl -o x http://h", "make CC=clang"):
        assert _decide(workspace, command, allow=[f"bash({command}*)"]) == "allow", command


_READERS = (
    "ls -la", "cat a b", "git status", "git diff --stat", "git log --oneline -5", "git show HEAD:a",
    "git branch -a", "git branch --merged main", "git tag -l x", "git remote -v", "git stash list",
    "git worktree list", "git reflog", "git --version", "python3 --version", "rg -n x src", "grep -rn x .",
    "find . -name x", "sed -n 1,5p a", "echo x", "awk '{print}' a", "head -n 5 a", "wc -l a", "pwd", "true",
    "test -f a", "[ -f a ]", "set -euo pipefail", "which a", "/usr/bin/cat a", "command -v git", "jq .a b",
    "sort a", "uniq a", "date", "stat a", "du -sh .", "tree src",
)  # fmt: skip
_NO_READERS = (
    "./ls", "src/cat a", "git branch x", "git branch -D x", "git tag x", "git tag -d x", "git stash",
    "git stash pop", "git remote add a b", "git remote update", "git reflog expire", "git worktree add x",
    "git config a", "git -C x log", "git -c a=b log", "git diff --ext-diff", "git log --output=x",
    "git submodule update", "git notes add", "git x", "find . -exec cat {} ;", "find . -ok x ;", "find . -fls x",
    "sort --files0-from=a", "sed -e w a", "sed 1e a", "set -k", "set a b", "env", "xargs cat", "time ls",
    "python3 a", "less a", "man a", "unknown", "exec ls", "tee a", "printf -v a b", "awk 'BEGIN{ARGV[1]=1}'",
    "awk 'BEGIN{getline x < \"y\"}'", "hostname -F a",
)  # fmt: skip


def test_readers_are_known_exactly() -> None:
    def is_reader(command: str) -> bool:
        return only_reads(
            [word.strip("'") for word in command.split(" ")] if "'" not in command else _split(command)
        )

    assert [command for command in _READERS if not is_reader(command)] == []
    assert [command for command in _NO_READERS if is_reader(command)] == []


def _split(command: str) -> list[str]:
    program, _, rest = command.partition(" ")
    return [program, rest.split("'")[1]]


_STEERED = (
    "PATH=. git status", "PATH=.:$PATH git status", "LD_PRELOAD=./x.so git status", "BASH_ENV=./x bash -c ls",
    "GIT_EXEC_PATH=. git status", "GIT_DIR=x git status", "GIT_CONFIG_COUNT=1 git status",
    "PYTHONPATH=x python3 a", "PYTHONSTARTUP=x python3 a", "NODE_OPTIONS=x node a", "PERL5OPT=x perl a",
    "RUBYOPT=x ruby a", "ENV=x sh a", "export PATH=.; git status", "declare -x LD_PRELOAD=x; git status",
    "readonly PATH=x", "env PATH=. git status", "timeout 5 env LD_LIBRARY_PATH=. git status",
    "PATH=.; git status", "read -r PATH <<< .", "printf -v PATH x", "MAKEFLAGS=x make", "IFS=x git status",
    "exec 3<<<'curl x'; bash <&3", "exec 3<<<x; sh 0<&3", "bash /dev/fd/3 3<<<x", "source /dev/stdin <<<x",
    ". /proc/self/fd/3", "cp $(which curl) q; ./q",
)  # fmt: skip
_NOT_STEERED = (
    "CI=1 make test", "LC_ALL=C sort a", "GIT_AUTHOR_NAME=x git commit -m y", "GIT_PAGER=cat git log",
    "export A=1", "PYTHONUNBUFFERED=1 python3 a", "NODE_ENV=test node a", "[ -n PATH ]", "echo PATH=x", "ls 2>&1",
    "bash a.sh", "cat <&3",
)  # fmt: skip


@pytest.mark.parametrize("verdict", ["deny", "ask"])
def test_an_environment_that_makes_another_program_run_asks_where_commands_are_forbidden(
    workspace: Path, verdict: str
) -> None:
    rules = {verdict: ["bash(curl *)"]}

    def allowed(command: str) -> bool:
        return _decide(workspace, command, "bypassPermissions", **rules) == "allow"

    assert list(filter(allowed, _STEERED)) == []
    assert [command for command in _NOT_STEERED if not allowed(command)] == []


_READS_BELOW = (
    "rg x", "rg x .", "rg -n x -- .", "grep -r x", "grep -R x .", "git grep x", "git diff", "git log -p",
    "git show", "find . -exec cat {} +", "find . -type f -exec grep x {} ;", "find . -name x | xargs cat",
    "xargs cat < list", "cat list | xargs -n1 head", "diff -r . ../other", "cp -r . out", "cp -a . out",
    "tar cf x.tar .", "rsync -a . out", "zip -r x.zip .", "wc --files0-from=list", "tar -cf x --files-from=list",
    "cd pkg && rg x ..", "sh -c 'rg x'", "ls | cpio -o", "fd . -x cat", "env rg x",
)  # fmt: skip
_WRITES_BELOW = (
    "git checkout main", "git restore .", "git clean -fd", "git reset --hard", "git stash pop", "git pull",
    "git merge x", "git apply x", "find . -delete", "find . -exec rm {} +", "find . -name x | xargs rm",
    "rm -rf .", "chmod -R 777 .", "tar xf a.tar", "unzip a.zip", "patch -p1 < a", "cp -r a/. .", "rsync -a a/ .",
    "rm -r secrets pkg",
)  # fmt: skip
_BESIDE = (
    "rg x src", "grep -rn x src", "git grep x -- src", "git diff -- src", "git status", "git log",
    "git show HEAD:a", "find . -name x", "find src -exec cat {} +", "find . | xargs ls", "ls -R", "tree",
    "du -sh .", "cp -r src out", "tar cf x.tar src", "rm -rf src", "git commit -m x", "git add src", "unzip -l",
    "chmod +x README.md", "mv a b",
)  # fmt: skip


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_rules_about_paths_apply_to_what_a_program_finds_by_itself(workspace: Path, mode: str) -> None:
    def verdicts(commands: tuple[str, ...], *closed: str) -> dict[str, str]:
        deny = list(closed)
        return {command: _decide(workspace, command, mode, allow=["bash"], deny=deny) for command in commands}

    for paths in ("secrets/**", "secrets/a/b.txt", "**/.env", "pkg/**/.env"):
        assert verdicts(_READS_BELOW, f"read_file({paths})") == dict.fromkeys(_READS_BELOW, "ask"), paths
        assert verdicts(_WRITES_BELOW, f"write_file({paths})") == dict.fromkeys(_WRITES_BELOW, "ask"), paths
    beside = tuple(command for command in _BESIDE if command != "unzip -l")
    assert verdicts(beside, "read_file(secrets/**)", "write_file(secrets/**)") == dict.fromkeys(beside, "allow")


def test_the_rows_of_these_tables_are_counted() -> None:
    tables = (
        _WRITES_PROTECTED, _TAKES_A_FILE_OR_COMMAND, _READERS, _NO_READERS, _STEERED, _NOT_STEERED, _READS_BELOW,
        _WRITES_BELOW, _BESIDE,
    )  # fmt: skip
    assert sum(map(len, tables)) >= 300
