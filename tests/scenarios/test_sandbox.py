"""The sandbox as a person meets it: in the chat, headless, and after a kill."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import TC, TXT
from tests.fakes.sandboxes import needs
from tests.scenarios.command import NO_SANDBOX, scripted, until

_LEAK = f"echo leaked > /var/lib/graph-agent-leak-{os.getpid()} && echo out || echo kept in"
_TARGET = Path(f"/var/lib/graph-agent-leak-{os.getpid()}")


@pytest.fixture(autouse=True)
def no_leak() -> Iterator[None]:
    yield
    _TARGET.unlink(missing_ok=True)


@pytest.mark.skipif(not os.access("/var/lib", os.W_OK), reason="needs a folder outside that this user may write")
def test_a_command_is_let_out_by_one_answer_which_holds_for_it_alone_and_survives_a_kill(tmp_path: Path) -> None:
    needs("bubblewrap")
    script = [TC("c1", "bash", {"command": _LEAK}), TC("c2", "bash", {"command": _LEAK}), TXT("done")]
    with scripted(tmp_path, script) as command:
        chat = command.chat("chat", "go", "--thread", "t1")
        chat.plays("sandbox: files can be", "o outside", "<y", "kept in")
        was_kept_in = not _TARGET.exists()
        chat.plays("o outside", "<o", "done")
        chat.signals(signal.SIGKILL)
        chat.ends()
        first, second = command.json("calls", "t1")["calls"]
        listed = command("calls", "t1").stdout

    assert (was_kept_in, _TARGET.read_text()) == (True, "leaked\n")
    assert [call.get("outside_sandbox", False) for call in (first, second)] == [False, True]
    assert [call["metadata"].get("sandbox") for call in (first, second)] == ["bubblewrap", None]
    assert listed.count("(outside the sandbox)") == 1


def test_headless_commands_are_kept_in_and_the_model_is_told_the_ways_out(tmp_path: Path) -> None:
    needs("bubblewrap")
    with scripted(tmp_path, [TC("c1", "bash", {"command": "echo x > /etc/new"}), TXT("done")]) as command:
        code, result = command.run_json("go", "--mode", "bypassPermissions")

    assert (code, result["status"], Path("/etc/new").exists()) == (0, "done", False)
    assert "[it ran in the sandbox, where files can be written in the workspace" in command.results()[0]


def test_a_denied_path_is_hidden_from_a_command_that_does_not_name_it_in_any_mode(tmp_path: Path) -> None:
    needs("bubblewrap")
    command_line = "python3 -c \"print(open('sec' + 'rets').read())\"; echo ran"
    with scripted(
        tmp_path,
        [TC("c1", "bash", {"command": command_line}), TXT("done")],
        settings='[policy]\ndeny = ["read_file(secrets)"]\n',
    ) as command:
        (command.workspace / "secrets").write_text("hunter2\n")
        code, result = command.run_json("go", "--mode", "bypassPermissions")

    assert (code, result["status"]) == (0, "done")
    assert ("hunter2" in command.results()[0], "Permission denied" in command.results()[0]) == (False, True)


def test_killed_inside_a_command_all_of_it_is_gone_and_recovery_finds_nothing_running(tmp_path: Path) -> None:
    needs("bubblewrap")
    script = [
        TC("c1", "bash", {"command": "echo half; setsid -f sleep 74.1; touch ready; sleep 74.2"}),
        TXT("done"),
    ]
    with scripted(tmp_path, script) as command:
        process = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until((command.workspace / "ready").exists)
        command.kill(process)
        [call] = command.json("recover")["calls"]
        left = sorted(path.name for path in command.workspace.iterdir())
        end = command("run", "--resume", "t1", "--recover", "cancel")

    assert (call["status"], call["partial_output"], call["processes"]) == ("interrupted", "half", [])
    assert (end.returncode, end.stderr.count("still runs")) == (0, 0)
    assert ("ready" in left, sorted(path.name for path in command.workspace.iterdir())) == (True, ["ready"])


def test_without_a_sandbox_nothing_runs_where_one_is_required(tmp_path: Path) -> None:
    with scripted(
        tmp_path, [TC("c1", "bash", {"command": "touch witness"}), TXT("done")], settings='sandbox = "required"\n'
    ) as command:
        broken = tmp_path / "sitecustomize.py"
        broken.write_text(
            "import tools.sandbox.sandbox as probe\n"
            "probe.landlock_abi = lambda: 0\n"
            "probe._bubblewrap_problem = lambda program: 'it is broken'\n"
        )
        command.extra_env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(__file__).parents[2]}"}
        code, _ = command.run_json("go", "--mode", "bypassPermissions")

    assert (code, (command.workspace / "witness").exists()) == (0, False)
    assert "because there is no sandbox" in command.results()[0]


def test_switched_off_commands_run_with_the_user_s_rights_and_the_prompt_says_so(tmp_path: Path) -> None:
    with scripted(
        tmp_path, [TC("c1", "bash", {"command": "echo x > ../outside"}), TXT("done")], settings=NO_SANDBOX
    ) as command:
        chat = command.chat("chat", "go")
        chat.plays("the setting sandbox is off", "<y", "done", "^\x04")

    assert (chat.ends(), (tmp_path / "outside").read_text()) == (0, "x\n")
