"""What deny rules close for reading or writing stays closed in the sandbox, however a program spells the path."""

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.toolset import sandbox_of, unenforced_rules
from graph_agent.config.settings import McpServer, Settings
from graph_agent.mcp.transport import ServerLog, open_streams
from tests.fakes.sandboxes import needs
from tests.fakes.tool_ports import ToolEnvironment
from tools.sandbox import Sandbox, protected_paths
from tools.sandbox.protected_paths import Mount, find_closed_places, ordered_mounts
from tools.shell_ops.background import ShellExit, start_background_command
from tools.shell_ops.bash import BashTool
from tools.shell_ops.shell_command import ShellCommand

_DENY = (
    "read_file(secrets/**)", "read(**/*.pem)", "read_file(other/src/plan)", "read_file(~/private/**)",
    "write_file(gen/**)", "edit_file(src/*.py)", "write(conf/prod.toml)",
)  # fmt: skip
_HIDDEN = ("secrets/a", "secrets/deep/b", "keys/x.pem", "other/src/plan", "../home/private/p")
_LOCKED = ("gen/g", "gen/deep/h", "src/m.py", "conf/prod.toml")
_OPEN = ("open/new", "open/tool", "src/readme", "other/src/free", "conf/test.toml")
_READ = r"""
cat s*ts/a ke?s/*.pem
cat ${x:-secrets}/a
cd s*ts && cat a
cd other/src; cat p???
python3 -c "print(open('sec' + 'rets/a').read())"
perl -e 'open F, "<secrets/a"; print <F>'
tar c . ; tar cf open/all.tar secrets; cat open/all.tar
grep -r contents . ; grep -ar contents secrets keys
find . -type f -exec cat {} +
git add -fA . ; git stash -a; git archive HEAD; git show :secrets/a
git hash-object -w secrets/a; git diff --no-index /dev/null secrets/a
mv other/src . ; mv other/src taken; cat src/plan taken/plan
mv other o2; cat o2/src/plan; mv keys k2; cat k2/x.pem
mv secrets open/s; cat open/s/a; mv secrets/a open/a; cat open/a
ln -sf ../secrets/a open/l; cat open/l; ln -s "$PWD/secrets" open/d; cat open/d/a
ln secrets/a open/hard; cat open/hard; ln keys/x.pem keys/y; cat keys/y
cp -t open secrets/a; cp -r secrets open/copy; cp keys/x.pem open/x; cat open/*
cat /proc/self/cwd/secrets/a /proc/self/root$PWD/secrets/a /proc/$$/cwd/keys/x.pem
while read -r line; do echo "$line"; done < sec""rets/a
echo Y2F0IHNlY3JldHMvYQ== | base64 -d | sh
eval "$(printf 'cat secr%s/a' ets)"; . secrets/a
chmod -R 777 secrets keys; cat secrets/deep/b keys/x.pem
dd if=secrets/a; sed -n p secrets/a; awk 1 secrets/a; od -c secrets/a; head secrets/a; gzip -c secrets/a | zcat
cat ~/pri*/p; cat ../home/private/p; cp -r ~/private open/mine; cat open/mine/p
unshare -Ur cat secrets/a; mount --bind secrets open; umount secrets; cat open/a secrets/a
printf 'secrets/a\0' | xargs -0 cat; diff secrets/a /dev/null; cmp -b secrets/a open/new; paste secrets/a
"""
_WRITE = r"""
echo x > g*n/g; echo x >> ${y:-gen}/g; echo x > s*c/m.py
cd g*n && echo x > g
python3 -c "open('ge' + 'n/g', 'w').write('x'); open('src/m.py', 'a').write('x')"
perl -i -pe 's/^/x/' gen/g src/m.py conf/prod.toml
sed -i s/c/x/ gen/g src/m.py conf/prod.toml
gzip -r gen src conf
tee gen/g src/m.py < open/new; dd if=open/new of=gen/g; truncate -s 0 gen/deep/h conf/prod.toml
mv open/new gen/g; mv -f open/tool src/m.py
cp -t gen open/new; cp open/new gen/g; cp --remove-destination open/new conf/prod.toml; install open/new src/m.py
ln -sf ../open/new gen/g; ln -sf ../open/new src/m.py
ln gen/g open/h1 && echo x > open/h1; ln src/m.py open/h2 && echo x > open/h2; ln src/m.py src/h3 && echo x > src/h3
ln -s ../gen open/l; echo x > open/l/g
mv gen g2; mkdir gen; echo x > gen/g
mv conf c2; mkdir conf; echo x > conf/prod.toml
mv src s2; mkdir src; echo x > src/m.py; mv open/../src open/src
rm -rf gen src/m.py conf; find gen -delete; rm -r conf
chmod -R 777 gen src; echo x > gen/g
mkdir -p up/gen; echo x > up/gen/g; mv -f up/gen/g gen; cp -rT up/gen gen; tar c -C up gen | tar x
git clean -fdx; git checkout -f; git stash -au
python3 -c "import os; os.rename('open/new', 'src/m.py')"
python3 -c "import os; os.replace('src/m.py', 'src/gone.py')"
python3 -c "import shutil; shutil.rmtree('gen'); shutil.move('conf/prod.toml', 'open')"
for name in src/*.py; do echo x > "$name"; done; printf 'gen/g\0' | xargs -0 -I F sh -c 'echo x > F'
echo Z3ppcCBnZW4vZw== | base64 -d | sh; eval "$(printf 'echo x > ge%s/g' n)"
cd /; echo x > "$OLDPWD/gen/g"; echo x > /proc/self/root$OLDPWD/src/m.py
patch gen/g < /dev/null; ed -s gen/g <<< $'1d\nw'; printf x | sponge gen/g; rsync open/new gen/g; unlink src/m.py
"""


@pytest.fixture(params=["bubblewrap", "landlock"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolEnvironment:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    made = ToolEnvironment(tmp_path)
    for name in (*_HIDDEN, *_LOCKED, *_OPEN):
        path = made.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"contents of {Path(name).name}\n")
    (made.workspace / ".gitignore").write_text("secrets\nkeys\nother\n")
    for words in (("init", "-q", "--template="), ("add", "open", ".gitignore"), ("commit", "-qm", "one")):
        _git(made.workspace, *words)
    return made


def _git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Me", "-c", "user.email=me@here")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def _box(kind: str, workspace: Path, *deny: str, **values: Any) -> Sandbox:
    """The agent's own sandbox under these rules."""
    settings = Settings.model_validate({"database": "/nowhere/agent.db", "policy": {"deny": deny}, **values})
    box = sandbox_of(settings, workspace)
    assert box is not None
    return Sandbox(box.rules, look=lambda: needs(kind))


async def _by_bash(around: ToolEnvironment, box: Sandbox, script: str) -> str:
    result = await BashTool().execute(command=script, timeout=60, context=around.context(sandbox=box))
    return result.output


async def _in_background(around: ToolEnvironment, box: Sandbox, script: str) -> str:
    run = ShellCommand(script, 60, around.workspace, around.context(sandbox=box))
    output, ended = around.workspace.parent / "spooled", asyncio.Event()
    shell, child = await start_background_command(run, output, outlives=False)

    async def note_end(_: ShellExit) -> None:
        ended.set()

    child.release()
    shell.watch(note_end)
    await ended.wait()
    return output.read_text(errors="replace")


async def _by_server(around: ToolEnvironment, box: Sandbox, script: str) -> str:
    log = ServerLog(around.workspace.parent / "log")
    server = McpServer(command="/bin/bash", args=("-c", f"(\n{script}\n) >&2"))
    async with open_streams(server, around.workspace, log, box) as (read, _):
        assert [message async for message in read] == []
    return log.path.read_text(errors="replace")


_STARTERS: dict[str, Callable[[ToolEnvironment, Sandbox, str], Any]] = {
    "bash": _by_bash,
    "background": _in_background,
    "server": _by_server,
}


def _script(rows: str) -> str:
    """All rows one after the other, each in a shell of its own, with its number before what it prints."""
    lines = rows.strip().split("\n")
    return "\n".join(f"echo '## {number}'\n(\n{line}\n) </dev/null 2>&1" for number, line in enumerate(lines))


def _leaks(output: str, rows: str) -> list[str]:
    """The rows in whose output contents of a hidden file appear."""
    lines, names = rows.strip().split("\n"), {Path(name).name for name in _HIDDEN}
    return [
        lines[int(part.partition("\n")[0])]
        for part in output.split("## ")[1:]
        if any(f"contents of {name}\n" in part for name in names)
    ]


@pytest.mark.parametrize("starter", _STARTERS)
async def test_what_is_denied_for_reading_never_appears(kind: str, starter: str, around: ToolEnvironment) -> None:
    box = _box(kind, around.workspace, *_DENY)

    output = await _STARTERS[starter](around, box, _script(_READ))
    # What was moved, copied or linked would appear to the next command.
    later = await _by_bash(around, box, "echo '## 0'; grep -r contents . ~ | sed 's/.*contents/contents/'")

    # Each row ran.
    assert output.count("## ") == len(_READ.strip().split("\n")), output
    assert (_leaks(output, _READ), _leaks(later, "next command")) == ([], [])
    assert "contents of new" in output
    # A rule that begins with two stars holds wherever a folder was moved.
    hidden = [around.workspace / name for name in _HIDDEN if "keys" not in name]
    hidden += [path for path in around.workspace.rglob("x.pem") if path.is_file()]
    assert [path.read_text() for path in hidden] == [f"contents of {Path(name).name}\n" for name in hidden]
    assert len(hidden) == len(_HIDDEN)


@pytest.mark.parametrize("starter", _STARTERS)
async def test_what_is_denied_for_writing_never_changes(kind: str, starter: str, around: ToolEnvironment) -> None:
    box = _box(kind, around.workspace, *_DENY)

    output = await _STARTERS[starter](around, box, _script(_WRITE))

    assert output.count("## ") == len(_WRITE.strip().split("\n"))
    locked = {name: (around.workspace / name).read_text() for name in _LOCKED}
    assert locked == {name: f"contents of {Path(name).name}\n" for name in _LOCKED}
    assert {path.name for path in (around.workspace / "gen").rglob("*")} == {"g", "deep", "h"}


async def test_what_is_not_denied_can_still_be_written(kind: str, around: ToolEnvironment) -> None:
    command = (
        "echo x > open/new && echo x > open/more && echo x >> conf/test.toml && cat src/m.py gen/g o*r/src/free"
    )

    output = await _by_bash(around, _box(kind, around.workspace, *_DENY), command)

    assert output.startswith("contents of m.py\ncontents of g\ncontents of free\n[exit code 0")
    names = ("open/new", "open/more", "conf/test.toml")
    assert [(around.workspace / name).read_text()[-2:] for name in names] == ["x\n", "x\n", "x\n"]


async def test_no_commit_takes_what_is_hidden_for_deleted(kind: str, around: ToolEnvironment) -> None:
    _git(around.workspace, "add", "-f", "secrets", "keys")
    _git(around.workspace, "commit", "-qm", "two")
    commit = "git -c user.name=Me -c user.email=me@here commit -qam three; git add -A"
    box = _box(kind, around.workspace, *_DENY)

    output = await _by_bash(around, box, f"echo x > open/new; {commit}; git show HEAD:secrets/a")

    for listing in (("ls-tree", "-r", "--name-only", "HEAD"), ("ls-files",)):
        assert {"secrets/a", "keys/x.pem"} <= set(_git(around.workspace, *listing).split())
    # What was committed before is in the repository, and git prints it.
    assert "contents of a" in output


async def test_what_does_not_exist_cannot_be_created_and_a_link_is_not_replaced(around: ToolEnvironment) -> None:
    (around.workspace / "linked").symlink_to("conf")
    rules = ("write(planned.txt)", "write(absent/file)", "write(dist/**)", "write(linked/prod.toml)")
    command = (
        "echo x > planned.txt; rm -f planned.txt; mkdir -p dist; echo x > dist/a; mkdir absent; "
        "echo x > absent/file; echo x > linked/prod.toml; rm linked; mkdir linked; echo x > linked/prod.toml"
    )

    output = await _by_bash(around, _box("bubblewrap", around.workspace, *rules), command)

    assert (around.workspace / "linked" / "prod.toml").read_text() == "contents of prod.toml\n"
    assert not any((around.workspace / name).exists() for name in ("planned.txt", "dist", "absent/file"))
    restored = f"{around.workspace}/linked, {around.workspace}/absent/file"
    assert f"[the sandbox restored protected names: {restored}]" in output


@pytest.mark.parametrize("rule", ["read(**)", "read(../**)", "read(~/../**)", "write(**)", "write(../**)"])
async def test_a_rule_that_closes_the_whole_workspace_does_so(
    kind: str, rule: str, around: ToolEnvironment
) -> None:
    command = f"pwd; echo x > open/new; echo x > open/more; cat */* {'~/private/p' if '..' in rule else ''}"

    output = await _by_bash(around, _box(kind, around.workspace, rule), command)

    # Never in / for want of a workspace: there the command would be about the whole disk.
    assert output.startswith(f"{around.workspace}\n")
    assert ("contents of" in output) is rule.startswith("write")
    assert sorted(path.name for path in (around.workspace / "open").iterdir()) == ["new", "tool"]
    assert (around.workspace / "open" / "new").read_text() == "contents of new\n"


@pytest.mark.parametrize(
    ("rule", "mounts"),
    [
        ("read(secrets/**)", {"secrets": "unreadable"}),
        ("read(secrets/)", {"secrets": "unreadable"}),
        ("read(secrets)", {}),
        ("read(secrets/*)", {"secrets/a": "unreadable", "secrets": "held"}),
        ("write(secrets/d*/**)", {"secrets/deep": "locked", "secrets": "held"}),
        ("write(other/src/plan)", {"other/src/plan": "locked", "other/src": "held", "other": "held"}),
        ("read(**/plan)", {"other/src/plan": "unreadable"}),
        ("read(**/src/pl*)", {"other/src/plan": "unreadable", "other/src": "held"}),
        ("read(other/**/pl*)", {"other/src/plan": "unreadable", "other": "held"}),
        ("read(**/src/**)", {"other/src": "unreadable", "src": "unreadable"}),
        ("read(o*)", {}),
        ("read(*)", {".gitignore": "unreadable", "secrets/a": "unreadable", "secrets": "held"}),
        ("read(to_file)", {"secrets/a": "unreadable", "secrets": "held"}),
        ("write(to_folder/**)", {"other/src": "locked", "other": "held"}),
        ("read(to_folder/plan)", {"other/src/plan": "unreadable", "other/src": "held", "other": "held"}),
        ("read(~/private/**)", {"../home/private": "unreadable"}),
        ("write(~/private/**)", {}),
        ("write(/**)", {"": "locked"}),
        ("read(gone/**)", {}),
        ("read(venv/**/b*)", {}),
    ],
)  # fmt: skip
def test_a_deny_rule_closes_what_it_names_and_holds_the_folders_above(
    rule: str, mounts: dict[str, str], around: ToolEnvironment
) -> None:
    (around.workspace / "to_file").symlink_to("secrets/a")
    (around.workspace / "to_folder").symlink_to("other/src")
    expected = {(Path(os.path.normpath(around.workspace / name)), kind) for name, kind in mounts.items()}

    found = find_closed_places(_box("bubblewrap", around.workspace, rule).rules, with_names=False)

    # A link cannot be closed itself: what it leads to is.
    assert {(mount.path, mount.kind) for mount in found.denied} == expected


def test_a_folder_that_is_held_is_no_way_into_one_that_is_closed() -> None:
    paths = [Path("/ws"), Path("/ws/.vscode"), Path("/ws/.vscode/a"), Path("/ws/.vscode/a/b")]
    mounts = [
        Mount(paths[0], "write"), Mount(paths[1], "read"), Mount(paths[2], "held"), Mount(paths[3], "unreadable"),
        Mount(Path("/ws/lib"), "locked"), Mount(Path("/ws/lib/.git"), "write"), Mount(Path("/ws/lib/key"), "empty"),
        Mount(Path("/keys"), "unreadable"), Mount(Path("/keys/ws"), "write"), Mount(Path("/keys/a"), "unreadable"),
    ]  # fmt: skip

    assert set(mounts) - set(ordered_mounts(mounts)) == {mounts[2], mounts[5], mounts[8], mounts[9]}


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("read(secrets/**)", ""),
        ("read(**/*.pem)", "the sandbox does not search node_modules, what is more than 3 folders down"),
        ("read(other/**/x)", ""),
        ("read(*/*.pem)", "the sandbox does not search node_modules"),
        ("read(*.pem)", ""),
        ("read(secrets)", "{ws}/secrets is a folder, and what is in it is named by {ws}/secrets/**"),
        ("read(many/*)", "only the first 300 paths are closed"),
        ("read(many/**/x)", "the sandbox does not search what follows the first 3,000 names"),
        ("read(/**)", "it closes the whole disk, and the sandbox only the folders it may write"),
        ("write(src/*.py)", "new files that it matches can be created"),
        ("write(new/file)", ""),
    ],
)
def test_what_the_sandbox_cannot_hold_of_a_rule_is_said(rule: str, reason: str, around: ToolEnvironment) -> None:
    for name in ("node_modules/p", "a/b/c/d/e", "many/sub"):
        (around.workspace / name).mkdir(parents=True)
    for number in range(3_000 if "many" in rule else 0):
        (around.workspace / "many" / str(number)).touch()

    unenforced = _box("bubblewrap", around.workspace, rule).unenforced_rules()

    assert "; ".join(why for _, why in unenforced) == reason.format(ws=around.workspace)
    assert {text for text, _ in unenforced} <= {rule}


def test_what_landlock_and_no_sandbox_at_all_cannot_hold_is_said(around: ToolEnvironment) -> None:
    settings = Settings.model_validate(
        {"database": "/nowhere/agent.db", "sandbox": "off", "policy": {"deny": ["read(a)", "bash(b)"]}}
    )

    absent = _box("landlock", around.workspace, "write(new/file)", "write(gen/**)").unenforced_rules()

    place = around.workspace / "new" / "file"
    assert absent == (("write(new/file)", f"{place} does not exist, and can be created"),)
    without = "without a sandbox only the text of a command is checked"
    assert unenforced_rules(settings, around.workspace) == [("read(a)", without)]


@pytest.mark.parametrize(
    ("deny", "looked_at"),
    [
        ((), 26),
        (("read(secrets/**)", "write(conf/prod.toml)"), 26),
        (("read(**/*.pem)", "read(~/../ws/**/.env)"), 26),
        # Once more what is in a folder that a rule names.
        (("write(src/*.py)",), 28),
        # A folder is read to its end, and then no other one.
        (("read(many/**/x)", "read(many/y*)"), 8_018),
    ],
)
def test_the_work_before_a_command_is_bounded(
    deny: tuple[str, ...], looked_at: int, around: ToolEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (around.workspace / "many").mkdir()
    for number in range(4_000 if looked_at > 3_000 else 0):
        (around.workspace / "many" / f"{number}").touch()
    seen: list[str] = []
    entries = protected_paths._entries

    def noting(folder: Path) -> list[os.DirEntry[str]]:
        found = entries(folder)
        seen.extend(entry.path for entry in found)
        return found

    monkeypatch.setattr(protected_paths, "_entries", noting)

    find_closed_places(_box("bubblewrap", around.workspace, *deny).rules)

    assert len(seen) == looked_at
