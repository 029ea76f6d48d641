import json
import os
from pathlib import Path

from tests.fakes.gguf import write_gguf
from tests.fakes.scripted_runtime import action
from tests.graph_agent.config.test_model_choice__local_model import LIBRARY
from tests.scenarios.command import Command


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
    assert refused.stderr.endswith("is no GGUF file: it does not begin with the letters GGUF.\n")


def test_a_local_model_that_is_gone_leaves_the_command_mode_which_says_why(tmp_path: Path) -> None:
    command = Command(tmp_path, extra_env={"GRAPH_AGENT_LOCAL_MODEL": str(tmp_path / "gone.gguf")})

    done = command("run", "list")

    assert done.returncode == 0
    assert "The local model does not answer: " in done.stdout
    assert "gone.gguf' cannot be read (No such file or directory)" in done.stdout
