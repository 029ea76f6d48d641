import json
import os
from pathlib import Path

import pytest

from tests.fakes.gguf import LIBRARY, write_gguf
from tests.fakes.scripted_runtime import action
from tests.graph_agent.cli.servers_scene import configure, mcp, settle
from tests.scenarios.command import Command


def test_the_real_command_sets_a_key_that_the_next_one_shows(tmp_path: Path) -> None:
    command = Command(tmp_path)

    was_set = command("config", "set", "max_steps", "7")
    shown = {item["key"]: item["value"] for item in command.json("config", "show")["settings"]}
    refused = command("config", "set", "max_steps", "many")

    assert (was_set.returncode, shown["max_steps"]) == (0, 7)
    assert (refused.returncode, "max_steps = 'many'" in refused.stderr) == (2, True)
    assert str(tmp_path / "home" / "config.toml") in command("config", "path").stdout
    assert "→ user     7" in command("config", "explain", "max_steps").stdout


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


def test_a_server_that_does_not_work_fails_its_test_with_the_reason(home: Path) -> None:
    (home / "config.toml").write_text("[mcp_servers.gone]\ncommand = 'no-such-program'\n")
    mcp("trust", "gone")

    tried = mcp("test", "gone")

    assert (tried.exit_code, "program 'no-such-program' not found" in tried.stdout) == (1, True)


@pytest.mark.parametrize(("name", "said"), [("demo", "is not trusted"), ("other", "configured: demo")])
def test_what_is_not_trusted_or_not_there_is_not_started(home: Path, name: str, said: str) -> None:
    configure(home, "--trace", str(home / "trace"))

    refused = mcp("test", name)

    assert (said in str(refused.exception), (home / "trace").exists()) == (True, False)


@pytest.mark.parametrize(
    ("arguments", "told"), [(("x", "npx", "-y"), True), (("--what", "x", "--", "npx", "-y"), False)]
)
def test_an_option_that_may_be_the_servers_is_answered_with_where_the_dashes_belong(
    arguments: tuple[str, ...], told: bool
) -> None:
    refused = mcp("add", *arguments)

    assert (refused.exit_code, "put -- before that command" in refused.output) == (2, told)


def test_what_was_remembered_is_shown_and_edited_by_the_real_command(tmp_path: Path) -> None:
    command = Command(tmp_path, extra_env={"EDITOR": "sed -i s/tabs/blanks/", "VISUAL": ""})
    command("run", "remember I like tabs")

    before = command("memory", "show").stdout
    edited = command("memory", "edit")
    after = command.json("memory", "show")["text"]

    assert ("I like tabs" in before, edited.returncode, "I like blanks" in after) == (True, 0, True)


def test_a_local_model_is_taken_works_and_is_labelled(tmp_path: Path) -> None:
    library = {"PYTHONPATH": os.pathsep.join(filter(None, (str(LIBRARY), os.environ.get("PYTHONPATH"))))}
    command = Command(tmp_path, extra_env=library)
    (command.workspace / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    model = write_gguf(tmp_path / "tiny.gguf")
    replies = [action("change_file", file_path="calc.py"), "```\ndef add(a, b):\n    return a + b\n```"]
    model.write_bytes(model.read_bytes() + b"\nREPLIES\n" + "\n".join(map(json.dumps, replies)).encode())

    taken = command("model", "local", str(model))
    code, asked = command.run_json("--thread", "t", "let add add")
    approved = command("approvals", "approve", asked["pending_approvals"][0]["call_id"])
    done = command("run", "--resume", "t", "--output", "json")

    assert (taken.returncode, code, approved.returncode, done.returncode) == (0, 3, 0, 0)
    assert (command.workspace / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert json.loads(done.stdout)["answer"].startswith("Done. Wrote calc.py")
    assert command.json("threads", "show", "t")["model"] == "tiny (local, limited)"


def test_a_file_that_is_no_model_is_refused_in_one_line(tmp_path: Path) -> None:
    command = Command(tmp_path)
    (command.workspace / "notes.txt").write_text("hello")

    refused = command("model", "local", "notes.txt")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.endswith("is not a GGUF file: it does not begin with the letters GGUF.\n")


def test_a_local_model_that_is_gone_leaves_the_command_mode_which_says_why(tmp_path: Path) -> None:
    command = Command(tmp_path, extra_env={"GRAPH_AGENT_LOCAL_MODEL": str(tmp_path / "gone.gguf")})

    done = command("run", "list")

    assert done.returncode == 0
    assert "The local model is not available: " in done.stdout
    assert "gone.gguf' cannot be read (No such file or directory)" in done.stdout
