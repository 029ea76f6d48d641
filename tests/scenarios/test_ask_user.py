"""A question of the model's: as durable as an approval, answered in words from anywhere, never asked twice."""

from pathlib import Path

from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import Command, until

_ASK = {"question": "Which port?", "options": ["8080", "9090"]}


def _told(server: FakeOpenAI) -> list[str]:
    return [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "tool"]


def test_a_question_waits_in_every_mode_until_words_answer_it_and_nothing_else_does(tmp_path: Path) -> None:
    both = TCS(("c1", "ask_user", _ASK), ("c2", "bash", {"command": "echo x >> log"}))
    with FakeOpenAI([both, TXT("as you say")], strict=True) as server:
        command = Command(tmp_path, server.base_url)
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
    assert _told(server) == ["9090, on localhost", "(no output)\n[exit code 0]"]
    assert ((command.workspace / "log").read_text(), server.faults) == ("x\n", [])


def test_what_is_refused_without_a_word_is_told_without_words_of_the_user(tmp_path: Path) -> None:
    both = TCS(("c1", "ask_user", _ASK), ("c2", "bash", {"command": "true"}))
    with FakeOpenAI([both, TXT("well")], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        command("run", "go", "--thread", "t1")
        ended = [command("approvals", "reject", call).returncode for call in ("c1", "c2")]
        command("run", "--resume", "t1")

    refused = ["Not run: the user does not answer this question.", "Not run: the user refused this call."]
    assert (ended, _told(server)) == ([0, 0], refused)


def test_where_nobody_may_be_asked_the_model_is_told_so(tmp_path: Path) -> None:
    with FakeOpenAI([TC("c1", "ask_user", _ASK), TXT("8080 then")], strict=True) as server:
        ended = Command(tmp_path, server.base_url)("run", "go", "--mode", "dontAsk")

    assert (ended.returncode, ended.stdout) == (0, "8080 then\n")
    assert "In this mode nobody is asked." in _told(server)[0]


def test_a_question_survives_a_kill_of_the_chat_that_shows_it_and_an_answer_survives_the_next(
    tmp_path: Path,
) -> None:
    with FakeOpenAI([TC("c1", "ask_user", _ASK), TXT("good choice")], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        first = PtyProgram(["-m", "graph_agent", "chat", "go", "--thread", "t1"], command.workspace, command.env)
        first.sees("answer > ")
        first.signals(9)
        first.ends()
        chat = PtyProgram(["-m", "graph_agent", "resume", "t1"], command.workspace, command.env)
        chat.sees("Which port?")
        chat.sees("answer > ")
        chat.enters("2")
        chat.sees("good choice")
        until(lambda: command.json("threads", "list")["threads"][0]["status"] == "idle")
        chat.signals(9)
        chat.ends()
        [call] = command.json("calls", "t1")["calls"]

    assert (_told(server), call["answer"], call["attempt"], call["status"]) == (["9090"], "9090", 1, "success")
    assert (len(server.bodies), server.faults) == (2, [])
