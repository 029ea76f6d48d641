"""Models that lack something, and models that stand in for others, as a user meets them."""

from pathlib import Path

import pytest

from graph_agent.app.opening import open_session
from graph_agent.errors import UsageError
from tests.fakes.openai_server import DELAY, ERR, TC, TXT, FakeOpenAI, Reply
from tests.scenarios.command import Command, scripted

NO_TOOLS = ERR(400, {"error": {"message": "registry.ollama.ai/library/fake does not support tools"}})


def _calling(tool: str, arguments: str) -> Reply:
    return TXT(f'I do it.\n<tool_call>\n{{"name": "{tool}", "arguments": {arguments}}}\n</tool_call>')


def test_a_model_without_functions_works_with_the_same_approvals_and_records_and_is_known_afterwards(
    tmp_path: Path,
) -> None:
    writing = _calling("write_file", '{"file_path": "a.txt", "content": "one </tool_call>\\n"}')
    with scripted(tmp_path, [NO_TOOLS, writing, TXT("written"), TXT("hello")]) as command:
        first, asked = command.run_json("write", "--thread", "t1")
        second, result = command.run_json("--resume", "t1", "--approve", "all")
        third, _ = command.run_json("hi")

    assert (first, second, third, result["answer"]) == (3, 0, 0, "written")
    assert [call["tool_name"] for call in asked["pending_approvals"]] == ["write_file"]
    assert (command.workspace / "a.txt").read_text() == "one </tool_call>\n"
    assert ["tools" in body for body in command.server.bodies] == [True, False, False, False]
    assert {message["role"] for body in command.server.bodies for message in body["messages"]} == {
        "system",
        "user",
        "assistant",
    }


def test_a_call_that_a_model_only_writes_down_does_not_run_and_the_user_is_told(tmp_path: Path) -> None:
    with scripted(tmp_path, [_calling("bash", '{"command": "touch t"}')] * 3) as command:
        done = command("run", "go", "--mode", "acceptEdits")

    assert (done.returncode, len(command.server.requests), list((tmp_path / "workspace").iterdir())) == (0, 3, [])
    assert 'it was not run. If this model has no function calling, set tool_protocol = "prompt"' in done.stderr


def test_another_model_stands_in_for_the_rest_of_the_turn(tmp_path: Path) -> None:
    reading = TC("c1", "ls", {"path": "."})
    with (
        FakeOpenAI([ERR(429, "busy", {"Retry-After": "3600"})]) as first,
        FakeOpenAI([reading, TXT("two")]) as second,
    ):
        settings = (
            f'[model]\nfallback = ["spare"]\n[models.spare]\nbase_url = "{second.base_url}"\nname = "other"\n'
        )
        done = Command(tmp_path, first.base_url, settings=settings)("run", "go")

    assert (done.returncode, done.stdout.strip(), len(first.requests)) == (0, "two", 1)
    assert [body["model"] for body in second.bodies] == ["other", "other"]
    assert f"Asking other @ {second.base_url[7:-3]} instead, until your next message." in done.stderr


def test_the_chat_counts_down_to_the_next_try_of_a_model_that_is_busy(tmp_path: Path) -> None:
    with FakeOpenAI([ERR(429, "busy", {"Retry-After": "2"}), DELAY(2.2, TXT("hello"))]) as server:
        command = Command(tmp_path, server.base_url)
        chat = command.chat("chat", "hi")
        chat.plays("asking the model again", "hello", "</exit")
        code = chat.ends()

    assert code == 0


async def test_a_thread_that_a_chat_goes_on_with_keeps_the_model_taken_within_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        '[model]\nbase_url = "http://127.0.0.1:9/v1"\nname = "base"\n'
        '[models.cloud]\nbase_url = "http://127.0.0.2:9/v1"\nname = "one"\n'
    )
    left = await open_session(workspace=tmp_path, thread_id="t1")
    await left.switch_model("cloud")
    await left.switch_model("two")
    await left.close()

    with pytest.raises(UsageError, match=r"has no flag 'max_step', 'modus'\. It has add_dirs, "):
        await open_session(workspace=tmp_path, thread_id="t2", flags={"modus": "plan", "max_step": 1})
    along = {"thread": "t1", "name": "two"}
    new = await open_session(workspace=tmp_path, flags={"model_left": along})
    label = new.model_label
    await new.close()
    again = await open_session(workspace=tmp_path, thread_id=new.thread_id)
    await again.close()

    assert (label, again.model_label) == ("two @ 127.0.0.2:9", "two @ 127.0.0.2:9")
