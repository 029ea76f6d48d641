from pathlib import Path

from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command


def test_a_fact_is_saved_unasked_and_known_to_the_next_thread(tmp_path: Path) -> None:
    script = [TC("c1", "save_memory", {"fact": "likes tabs"}), TXT("noted"), TXT("hello")]
    with FakeOpenAI(script, strict=True) as server:
        command = Command(tmp_path, server.base_url)
        first = command.run_json("I like tabs", "--thread", "t1")
        second = command.run_json("hello", "--thread", "t2")

    wanted = "## Agent Memories\n\n- likes tabs <!-- saved by graph-agent, thread t1 -->\n"
    assert (first[0], second[0], (tmp_path / "home" / "CONTEXT.md").read_text()) == (0, 0, wanted)
    prompts = [body["messages"][0]["content"] for body in server.bodies]
    assert ["likes tabs" in prompt for prompt in prompts] == [False, False, True]


def test_the_memory_file_may_be_read_and_asked_for_but_the_settings_beside_it_stay_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "CONTEXT.md").write_text("be brief")
    script = [
        TC("c1", "read_file", {"file_path": str(home / "CONTEXT.md")}),
        TC("c2", "write_file", {"file_path": str(home / "config.toml"), "content": ""}),
        TC("c3", "write_file", {"file_path": str(home / "CONTEXT.md"), "content": ""}),
    ]
    with FakeOpenAI(script, strict=True) as server:
        command = Command(tmp_path, server.base_url)
        code, _ = command.run_json("go", "--thread", "t1", "--mode", "acceptEdits")
        statuses = {call["call_id"]: call["status"] for call in command.json("calls")["calls"]}

    assert (code, statuses) == (3, {"c1": "success", "c2": "cancelled", "c3": "awaiting_approval"})
