import json
import os
import re
import shutil
import sys
from pathlib import Path

from tests.architecture.checkout import ROOT
from tests.cases.bench import SetUp, bash
from tests.fakes.openai_server import TC, TCS, TXT


def _examples() -> str:
    """The configuration that docs/hooks.md shows."""
    page = (ROOT / "docs/hooks.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL))


def test_the_examples_of_the_docs_do_what_they_say(set_up: SetUp, tmp_path: Path) -> None:
    replies = [
        TCS(bash("c1", "git push origin main"), bash("c2", "echo fine")),
        TC("c3", "write_file", json.dumps({"file_path": "a.py", "content": "def broken(:\n"})),
        TC("c4", "write_file", json.dumps({"file_path": "b.py", "content": "import os\n"})),
        TC("c5", "bash", json.dumps({"command": "npm --version; touch d"})),
        TXT("ok"),
    ]
    ruff = shutil.which("ruff", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert ruff is not None
    bench = set_up(*replies, env={"HOME": str(tmp_path), "PATH": f"{Path(ruff).parent}:{os.environ['PATH']}"})
    bench.configure(_examples())

    ran = bench.run()
    kept_back = bench.run(f"my key is sk-{'a' * 20}")

    blocked, fine = bench.results(2)
    assert ran.ending == (0, "ok")
    assert blocked.startswith("Error: blocked by the hook \"if grep -q 'git push'; then…\": Pushing is for people")
    assert fine == "fine\n[exit code 0]"
    assert re.search(r"\[The hook .*SyntaxError: invalid syntax\]", bench.results(3)[-1], re.DOTALL)
    assert re.search(r"\[The hook .*b\.py:1:8: F401 .*`os` imported but unused", bench.results(4)[-1], re.DOTALL)
    assert "arguments were changed by the hook" in bench.results(5)[-1]
    assert "to {'command': 'pnpm --version; touch d'}" in bench.results(5)[-1]
    [turn] = (tmp_path / "turns.jsonl").read_text().splitlines()
    assert (json.loads(turn)["status"], json.loads(turn)["answer"]) == ("done", "ok")
    assert (kept_back.code, "There is a key in it." in kept_back.err) == (1, True)


_PROJECT = '[[hooks.before_tool]]\ncommand = "touch ran; .graph-agent/hooks/check.sh"\n'


def test_hooks_of_a_project_run_only_where_it_is_trusted_with_exactly_what_they_call(set_up: SetUp) -> None:
    replies = [(TCS(bash(call_id, "echo fine")), TXT("ok")) for call_id in ("c1", "c2", "c3")]
    bench = set_up(*(reply for pair in replies for reply in pair))
    script = bench.workspace / ".graph-agent/hooks/check.sh"
    script.parent.mkdir(parents=True)
    (bench.workspace / ".graph-agent/config.toml").write_text(_PROJECT)
    script.write_text("#!/bin/sh\necho checked >&2; exit 2\n")
    script.chmod(0o755)

    untrusted = bench.run("go")
    ran_untrusted = bench.read("ran")
    shown = bench.command("config", "trust", "--yes").stdout
    trusted = bench.run("go")
    (bench.workspace / "ran").unlink()
    script.write_text("#!/bin/sh\ntouch stolen\n")
    changed = bench.run("go")

    assert (untrusted.code, trusted.code, changed.code) == (0, 0, 0)
    assert (ran_untrusted, bench.results(2)) == (None, ["fine\n[exit code 0]"])
    assert 'hooks.before_tool: {"command": "touch ran; .graph-agent/hooks/check.sh"}' in shown
    assert ".graph-agent/hooks/check.sh: 2 lines of what hooks may run, sha256 " in shown
    assert bench.results(4)[-1].endswith("checked")
    assert ("folder not trusted since it changed" in changed.err, bench.read("ran"), bench.read("stolen")) == (
        True,
        None,
        None,
    )


def test_a_prompt_may_be_a_command_of_ones_own_and_one_of_an_untrusted_project_is_refused(set_up: SetUp) -> None:
    bench = set_up(TXT("one"), TXT("two"))
    for folder, text in (
        (bench.home / "commands", "Mine: $ARGUMENTS"),
        (bench.workspace / ".graph-agent/commands", "Theirs"),
    ):
        folder.mkdir(parents=True)
        (folder / f"{text.split(':')[0].lower()}.md").write_text(text)

    mine = bench.ask("/mine a b")
    untrusted = bench.ask("/theirs")
    trusted = bench.ask("/theirs", "--trust")

    sent = [body["messages"][-1]["content"] for body in bench.server.bodies]
    assert (mine.ending, untrusted.code, trusted.ending) == ((0, "one"), 2, (0, "two"))
    assert sent == ["Mine: a b", "Theirs"]
    assert "graph-agent config trust" in untrusted.err
