import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.pty_program import PtyProgram

_CTRL_D = "\x04"
_PLAN = {"items": [{"content": "Look around", "status": "in_progress"}]}


def _environment(folder: Path, base_url: str) -> dict[str, str]:
    home = {"GRAPH_AGENT_HOME": str(folder / "home"), "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "any"}
    return {**os.environ, **home}


def _workspace(folder: Path) -> Path:
    (folder / "work").mkdir()
    return folder / "work"


def test_the_slash_commands_serve_one_chat_that_chooses_its_model_and_visits_threads(tmp_path: Path) -> None:
    replies = [TC("c1", "todo_write", _PLAN), TXT("first answer"), TXT("second answer")]
    with FakeOpenAI(replies, strict=True, models=["tiny", "huge"]) as server:
        environment = _environment(tmp_path, server.base_url)
        chat = PtyProgram(["-m", "graph_agent", "chat"], _workspace(tmp_path), environment)
        chat.plays("> ", "<plan it", "2  huge", "by number or name > ", "<2", "Model: huge @ 127.0.0.1")
        chat.plays("first answer")

        for line, shown in (
            ("/help", "/resume [ID]"),
            ("/todo", "[>] Look around"),
            ("/calls", "todo_write"),
            ("/inspect messages.1.content", "plan it"),
            ("/mode plan", "mode: plan"),
            ("/tools", "write_file"),
            ("/context", "tools"),
            ("/status", "graph-agent.db"),
            ("/memory", "Memory is empty"),
            ("/retry", "There is nothing to retry"),
            ("/cals", "Did you mean /calls?"),
            ("/model", "/model NAME switches to another"),
            ("/model tiny", "model: tiny @ 127.0.0.1"),
            ("/threads", "plan it"),
        ):
            chat.plays(f"<{line}", shown)

        chat.plays("</clear", "Return to the previous thread")
        first = re.search(r"thread with /resume ([0-9a-f]{32})", chat.output)
        assert first is not None
        chat.plays("<hello again", "second answer", "</resume zzzzzz", "zzzzzz", f"</resume {first[1][:8]}")
        chat.plays("first answer", f"</resume {first[1]}", "already in", "</quit")

        assert chat.ends() == 0
    assert [body["model"] for body in server.bodies] == ["huge", "huge", "tiny"]
    assert [message["content"] for message in server.bodies[2]["messages"][1:]] == ["hello again"]
    assert f"graph-agent resume {first[1]}" in chat.output


def test_a_thread_is_looked_into_forked_rewound_and_written_out_without_leaving_the_chat(tmp_path: Path) -> None:
    work = _workspace(tmp_path)
    write = {"file_path": "made.txt", "content": "x\n"}
    replies = [TXT("first answer"), TC("c1", "write_file", write), TXT("it is written"), TXT("here again")]
    with FakeOpenAI(replies, strict=True, models=["tiny"]) as server:
        environment = {**_environment(tmp_path, server.base_url), "GRAPH_AGENT_MODEL": "tiny"}
        chat = PtyProgram(["-m", "graph_agent", "chat", "--thread", "origin"], work, environment)
        chat.plays("> ", "<say something", "first answer", "</history", "CHECKPOINT", " *")
        rest = re.search(r"([0-9a-f]{8}) \*", chat.output) or pytest.fail(chat.output)
        chat.plays("<write it", "y run", "<y", "it is written")
        assert (work / "made.txt").exists()

        for line, shown in (
            ("/graph", "> END"),
            (f"/diff {rest[1]}", "user: write it"),
            ("/diff", "+++ made.txt"),
            ("/mcp", "No MCP servers"),
            ("/doctor", "database"),
            ("/export out.html", "Wrote out.html"),
            ("/export", "Name a file, for example /export thread.html"),
            ("/rewind zzzzzz --odd", "Usage: /rewind NUMBER"),
            ("/rewind zzzzzz", "zzzzzz"),
            (f"/rewind {rest[1]}", "Continue?"),
            ("n", "Nothing was changed"),
            (f"/rewind {rest[1]}", "Continue?"),
            ("y", "Done. The thread is at"),
            ("/rewind --undo", "Continue?"),
            ("y", "Done. The thread is at"),
            (f"/fork {rest[1]}", "Forked at checkpoint"),
            ("go on", "here again"),
        ):
            chat.plays(f"<{line}", shown)
            if shown == "Done. The thread is at":
                chat.sees("> ")
        chat.enters("/quit")

        assert chat.ends() == 0
    assert (work / "made.txt").exists()
    assert (work / "out.html").exists()
    asked = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]
    assert asked == ["say something", "go on"]


def test_lines_typed_in_one_breath_are_all_taken_in_their_order_in_the_thread_they_are_for(tmp_path: Path) -> None:
    answers = [TXT("first answer"), TXT("second answer"), TXT("third answer")]
    with FakeOpenAI(answers, strict=True, models=["tiny"]) as server:
        environment = {**_environment(tmp_path, server.base_url), "GRAPH_AGENT_MODEL": "tiny"}
        chat = PtyProgram(["-m", "graph_agent", "chat"], _workspace(tmp_path), environment)
        chat.plays("> ", "<say something", "first answer", "> ")

        chat.types_at_once("/todo\r/mode plan\rgo on\r/mode acceptEdits\r/clear\ranew\r")
        chat.plays("mode: plan", "second answer", "mode: acceptEdits", "Return to the previous thread")
        chat.plays("third answer", "</quit")

        assert chat.ends() == 0
        assert [one["content"] for one in server.bodies[-1]["messages"] if one["role"] == "user"] == ["anew"]


@pytest.mark.parametrize("answer", ["\r", "1\r"])
def test_a_chat_without_a_named_model_never_fails_for_it(tmp_path: Path, answer: str) -> None:
    with FakeOpenAI([TXT("hello")], models=["tiny", "huge"]) as server:
        chat = PtyProgram(
            ["-m", "graph_agent", "chat", "hi"], _workspace(tmp_path), _environment(tmp_path, server.base_url)
        )
        chat.plays("by number or name > ", f"^{answer}", "hello" if "1" in answer else "/retry to try again")
        chat.plays(f"^{_CTRL_D}")

        assert chat.ends() == 0


def test_a_chat_opens_while_its_endpoint_is_down(tmp_path: Path) -> None:
    environment = _environment(tmp_path, "http://127.0.0.1:9/v1")
    chat = PtyProgram(["-m", "graph_agent", "chat"], _workspace(tmp_path), environment)

    chat.plays("> ", "</calls", "The list of models cannot be read", "No calls", f"^{_CTRL_D}")

    assert chat.ends() == 0


def test_a_headless_run_without_a_named_model_says_what_to_set(tmp_path: Path) -> None:
    with FakeOpenAI(models=["tiny", "huge"]) as server:
        done = subprocess.run(
            [sys.executable, "-m", "graph_agent", "run", "hi"],
            cwd=_workspace(tmp_path),
            env=_environment(tmp_path, server.base_url),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    assert (done.returncode, "set GRAPH_AGENT_MODEL" in done.stderr) == (2, True)
    assert server.bodies == []
