"""A question of the model's: as durable as an approval, answered in words from anywhere, never asked twice."""

import json
from pathlib import Path

from tests.fakes.openai_server import TC, TCS, TXT
from tests.scenarios.command import scripted, until

_ASK = {"question": "Which port?", "options": ["8080", "9090"]}


def test_a_question_waits_in_every_mode_until_words_answer_it_and_nothing_else_does(tmp_path: Path) -> None:
    both = TCS(("c1", "ask_user", _ASK), ("c2", "bash", {"command": "echo x >> log"}))
    with scripted(tmp_path, [both, TXT("as you say")]) as command:
        first, asked = command.run_json("go", "--thread", "t1", "--mode", "bypassPermissions")
        listed = command("approvals", "list").stdout
        refused = [
            command("approvals", "approve", "c1"),
            command("approvals", "answer", "c1", " "),
            command("approvals", "edit", "c1", "--arguments", "{}"),
        ]
        second, _ = command.run_json("--resume", "t1", "--approve", "all", "--mode", "bypassPermissions")
        given = command.json("approvals", "answer", "c1", "9090, on localhost")
        late = command("approvals", "answer", "c1", "another")
        code, result = command.run_json("--resume", "t1", "--mode", "bypassPermissions")

    [question] = asked["pending_approvals"]
    assert (first, second, code, result["answer"]) == (3, 3, 0, "as you say")
    assert (question["call_id"], question["requires_input"], question["arguments"]) == ("c1", True, _ASK)
    assert "  │ Which port?\n  │ 1. 8080\n  │ 2. 9090\n" in listed
    assert "approvals answer CALL TEXT" in listed
    assert "approvals approve" not in listed
    assert [one.returncode for one in refused] == [1, 2, 1]
    assert "`graph-agent approvals answer c1 TEXT`" in refused[0].stderr
    assert (given["kind"], given["accepted"], late.returncode) == ("answer", True, 1)
    assert command.results() == ["9090, on localhost", "(no output)\n[exit code 0]"]
    assert ((command.workspace / "log").read_text()) == ("x\n")


def test_what_is_refused_without_a_word_is_told_without_words_of_the_user(tmp_path: Path) -> None:
    both = TCS(("c1", "ask_user", _ASK), ("c2", "bash", {"command": "touch made"}))
    with scripted(tmp_path, [both, TXT("well")]) as command:
        command("run", "go", "--thread", "t1")
        ended = [command("approvals", "reject", call).returncode for call in ("c1", "c2")]
        command("run", "--resume", "t1")

    refused = [
        "Not run: the user declined to answer this question. Do not repeat it.",
        "Not run: the user rejected this call. Do not repeat it.",
    ]
    assert (ended, command.results()) == ([0, 0], refused)


def test_where_nobody_may_be_asked_the_model_is_told_so(tmp_path: Path) -> None:
    with scripted(tmp_path, [TC("c1", "ask_user", _ASK), TXT("8080 then")]) as command:
        ended = command("run", "go", "--mode", "dontAsk")

    assert (ended.returncode, ended.stdout) == (0, "8080 then\n")
    assert "This mode never asks." in command.results()[0]


def test_a_question_survives_a_kill_of_the_chat_that_shows_it_and_an_answer_survives_the_next(
    tmp_path: Path,
) -> None:
    with scripted(tmp_path, [TC("c1", "ask_user", _ASK), TXT("good choice")]) as command:
        first = command.chat("chat", "go", "--thread", "t1")
        first.sees("? help")
        first.signals(9)
        first.ends()
        chat = command.chat("resume", "t1")
        chat.plays("Which port?", "? help", "<2", "good choice")
        until(lambda: command.json("threads", "list")["threads"][0]["status"] == "idle")
        chat.signals(9)
        chat.ends()
        [call] = command.json("calls", "t1")["calls"]

    assert (command.results(), call["answer"], call["attempt"], call["status"]) == (["9090"], "9090", 1, "success")
    assert len(command.server.bodies) == 2


def test_edited_arguments_are_what_runs_and_bad_ones_leave_the_question_open(tmp_path: Path) -> None:
    script = [TC("c1", "write_file", {"file_path": "a.txt", "content": "model\n"}), TXT("done")]
    with scripted(tmp_path, script) as command:

        def edit(arguments: str) -> tuple[int, str]:
            done = command("approvals", "edit", "c1", "--arguments", arguments, "--json")
            return done.returncode, done.stdout + done.stderr

        command.run_json("go", "--thread", "t1")
        unusable = edit('{"file_path": 7}')
        denied = edit(json.dumps({"file_path": str(tmp_path / "home" / "config.toml"), "content": ""}))
        no_object = edit("[1]")
        waiting = [call["call_id"] for call in command.json("approvals", "list")["approvals"]]
        code, accepted = edit('{"file_path": "b.txt", "content": "mine\\n"}')
        late = edit('{"file_path": "c.txt", "content": ""}')
        end, _ = command.run_json("--resume", "t1")

    assert [unusable[0], denied[0], no_object[0], waiting] == [1, 1, 2, ["c1"]]
    assert all("is still pending" in told for _, told in (unusable, denied))
    given = json.loads(accepted)
    assert (code, {**given, "by": "", "at": ""}) == (
        0,
        {"call_id": "c1", "thread_id": "t1", "kind": "edit", "accepted": True, "by": "", "at": ""},
    )
    assert (late[0], json.loads(late[1])) == (1, {**given, "accepted": False})
    assert (end, sorted(path.name for path in command.workspace.iterdir())) == (0, ["b.txt"])
    assert (command.workspace / "b.txt").read_text() == "mine\n"
    assert "b.txt" in command.server.bodies[-1]["messages"][-1]["content"]
