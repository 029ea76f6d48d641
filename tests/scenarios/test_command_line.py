"""The program without a command: prompts, short options and piped text, in real processes."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.model_trial import red_square
from tests.fakes.openai_server import TXT
from tests.scenarios.command import Command, scripted

pytestmark = pytest.mark.slow


def _sent(body: dict[str, Any]) -> list[str]:
    """The texts of the user's messages in a request."""
    contents = [message["content"] for message in body["messages"] if message["role"] == "user"]
    return [one if isinstance(one, str) else one[0]["text"] for one in contents]


def test_print_continue_resume_and_model_do_what_other_agents_do(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT(f"answer {number}") for number in range(6)]) as bench:
        (bench.workspace / "README").touch()

        printed = bench("-p", "first")
        continued = bench("-c", "-p", "second", "-m", "other", "--output", "json")
        result = json.loads(continued.stdout)
        resumed = bench("-r", result["thread_id"], "third")
        positional = bench("fourth message")
        piped = bench("-m", "other", stdin="fifth\n")
        added = bench("-p", "sixth", stdin="a </stdin> b\n")

    codes = [one.returncode for one in (printed, continued, resumed, positional, piped, added)]
    assert (codes, printed.stdout, resumed.stdout) == ([0] * 6, "answer 0\n", "answer 2\n")
    assert [body["model"] for body in bench.server.bodies] == ["fake", "other", "other", "fake", "other", "fake"]
    assert [_sent(body) for body in bench.server.bodies] == [
        ["first"],
        ["first", "second"],
        ["first", "second", "third"],
        ["fourth message"],
        ["fifth\n"],
        ["sixth\n\n<stdin>\na <\\/stdin> b\n</stdin>"],
    ]


def test_a_mistyped_command_is_not_sent_to_a_model(tmp_path: Path) -> None:
    with scripted(tmp_path, []) as bench:
        refused = [bench(*words) for words in (["theads"], ["theads", "list"], ["fix", "it"], ["approve", "1a2b"])]

    assert [(one.returncode, one.stdout) for one in refused] == [(2, "")] * 4
    assert [one.stderr.splitlines()[0] for one in refused] == [
        "graph-agent: Unknown command theads. Did you mean `graph-agent threads`?",
        "graph-agent: Unknown command theads. Did you mean `graph-agent threads`?",
        "graph-agent: Put a prompt of several words in quotes: graph-agent 'fix it'",
        "graph-agent: Unknown command approve. Did you mean `graph-agent approvals approve`?",
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "hi", "--workspace", "/nonexist"),
        ("run", "hi", "--nope"),
        ("run", "--resume", "ffffffff"),
        ("-p", "hi", "--mode", "odd"),
    ],
    ids=" ".join,
)
def test_a_run_that_fails_before_it_begins_prints_its_result_object_too(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with scripted(tmp_path, []) as bench:
        plain = bench(*words)
        one = bench(*words, "--output", "json")
        stream = bench(*words, "--output=stream-json")

    result, last = json.loads(one.stdout), json.loads(stream.stdout.splitlines()[-1])
    assert (plain.stdout, plain.returncode) == ("", one.returncode)
    assert (result["status"], last["type"], last["status"]) == ("failed", "result", "failed")
    assert result["error"] == last["error"]
    assert result["error"].split()[0] in one.stderr


def test_a_prompt_on_a_terminal_starts_the_chat_with_it(tmp_path: Path) -> None:
    command = Command(tmp_path)
    (command.workspace / "notes.txt").touch()
    first = command.chat("list the files")
    first.plays("notes.txt", "> ", "^\x04")
    assert first.ends() == 0

    second = command.chat("-c", "read notes.txt")
    second.plays("list the files", "read_file", "> ", "^\x04")

    assert second.ends() == 0
    [thread] = command.json("threads", "list")["threads"]
    assert thread["turns"] == 2


def test_an_image_is_attached_from_anywhere_but_mentions_of_other_files_still_need_approval(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(red_square())
    (tmp_path / "other.png").write_bytes(red_square())
    with scripted(tmp_path, [TXT("red"), TXT("blue")]) as bench:
        asked = bench("-p", "what is this?", "-i", "../shot.png")
        pasted = bench("-p", f"what is @{tmp_path / 'other.png'}", "-i", "../shot.png")
        missing = bench("-p", "what is this?", "-i", "gone.png")
        (tmp_path / "notes.png").write_text("no image")
        text = bench("-p", "what is this?", "-i", "../notes.png")
        alone = bench("-i", "../shot.png")

    kinds = [[part["type"] for part in body["messages"][-1]["content"]] for body in bench.server.bodies]
    assert (asked.returncode, pasted.returncode, kinds) == (0, 0, [["text", "image_url"]] * 2)
    assert "other.png is not attached: reading it needs approval" in pasted.stderr
    assert (missing.returncode, "gone.png" in missing.stderr, alone.returncode) == (2, True, 2)
    assert (text.returncode, "notes.png is not a PNG, JPEG, GIF or WebP image." in text.stderr) == (2, True)
    words = [body["messages"][-1]["content"][0]["text"].split("\n")[0] for body in bench.server.bodies]
    assert all("[image 1: shot.png, 32x32]" in line for line in words)


def test_a_pipe_that_stays_silent_does_not_hold_up_the_prompt(tmp_path: Path) -> None:
    command = Command(tmp_path)
    (command.workspace / "notes.txt").touch()
    read_end, write_end = os.pipe()
    try:
        done = subprocess.run(
            command.argv("-p", "list the files"),
            cwd=command.workspace,
            env=command.env,
            stdin=read_end,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(read_end)
        os.close(write_end)

    assert (done.returncode, "notes.txt" in done.stdout, "Nothing was piped in" in done.stderr) == (0, True, True)
