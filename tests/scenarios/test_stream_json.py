"""The stream for programs: every line fits the published schema, numbered without gaps, first to last."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.fakes.openai_server import ERR, TC, TXT, FakeOpenAI, Reply
from tests.scenarios.command import Command

_SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "events.schema.json").read_text())


def lines_of(command: Command, *arguments: str) -> list[dict[str, Any]]:
    done = command("run", *arguments, "--output", "stream-json")
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ([TXT("hello")], "done"),
        ([TC("c1", "ls", {"path": "."}), TC("c2", "nothing", {}), TXT("done")], "done"),
        ([TC("c1", "write_file", {"file_path": "a.txt", "content": "x"})], "awaiting_approval"),
        ([ERR(401, {"error": {"message": "no"}})], "model_error"),
    ],
    ids=["answer", "calls", "question", "failure"],
)
def test_every_line_fits_the_schema_and_the_last_one_is_the_result(
    script: list[Reply], status: str, tmp_path: Path
) -> None:
    with FakeOpenAI(script) as server:
        lines = lines_of(Command(tmp_path, server.base_url), "go")

    for line in lines:
        Draft202012Validator(_SCHEMA).validate(line)
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert (lines[0]["type"], lines[-1]["type"], lines[-1]["status"]) == ("started", "result", status)


def test_a_line_that_is_not_described_does_not_fit_the_schema() -> None:
    faults = list(Draft202012Validator(_SCHEMA).iter_errors({"seq": 1, "type": "guessed"}))

    assert len(faults) == 1


def test_what_is_told_while_the_session_opens_follows_its_first_event(tmp_path: Path) -> None:
    settings = '[mcp_servers.demo]\ncommand = "true"\n'
    with FakeOpenAI([TXT("hello")]) as server:
        lines = lines_of(Command(tmp_path, server.base_url, settings=settings), "go")

    assert [(line["seq"], line["type"]) for line in lines[:2]] == [(1, "started"), (2, "warning")]


def _answer(**fields: Any) -> str:
    return json.dumps({"type": "answer", **fields})


def test_a_program_sends_messages_and_answers_and_gets_a_result_for_each_turn(tmp_path: Path) -> None:
    ask = TC("c1", "bash", {"command": "touch a"})
    other = TC("c2", "bash", {"command": "touch b"})
    lines = [
        '{"type": "user", "text": "go"}',
        "nonsense",
        '{"type": "user", "words": "x"}',
        '{"type": "user", "text": "and then?"}',
        _answer(call_id="c9", kind="approve"),
        _answer(call_id="c1", kind="retry"),
        _answer(call_id="c1", kind="approve"),
        "",
        _answer(call_id="c2", kind="reject", reason="no"),
    ]
    with FakeOpenAI([ask, TXT("made"), other, TXT("fine")]) as server:
        command = Command(tmp_path, server.base_url)
        arguments = ("run", "--input-format", "stream-json", "--output", "stream-json")
        done = command(*arguments, stdin="\n".join(lines))
        heard = [message["content"] for message in server.bodies[-1]["messages"] if message["role"] == "user"]
    printed = [json.loads(line) for line in done.stdout.splitlines()]

    for line in printed:
        Draft202012Validator(_SCHEMA).validate(line)
    assert [line["seq"] for line in printed] == list(range(1, len(printed) + 1))
    assert [(one["status"], one["answer"]) for one in printed if one["type"] == "result"] == [
        ("awaiting_approval", ""),
        ("awaiting_approval", ""),
        ("awaiting_approval", ""),
        ("done", "fine"),
    ]
    assert [one["line"] for one in printed if one["type"] == "input_error"] == [2, 3, 5, 6]
    assert (done.returncode, heard) == (0, ["go", "and then?"])
    assert [(command.workspace / name).exists() for name in "ab"] == [True, False]


_NUMBER = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
_REFUSED = ERR(400, {"error": {"message": "response_format is not supported by this model"}})


@pytest.mark.parametrize(
    ("replies", "code", "structured", "formats"),
    [
        ([TXT('{"n": 1}')], 0, {"n": 1}, [False]),
        ([TXT('```json\n{"n": 1}\n```')], 0, {"n": 1}, [False]),
        ([TXT("one"), TXT('{"n": "1"}'), TXT('{"n": 2}')], 0, {"n": 2}, [False, True, True]),
        ([TXT("one"), _REFUSED, TXT('{"n": 2}')], 0, {"n": 2}, [False, True, False]),
        ([TXT("one"), TXT("two"), TXT("three")], 6, None, [False, True, True]),
    ],
    ids=["fits", "in a fence", "corrected", "format refused", "never fits"],
)
def test_an_answer_fits_the_schema_or_the_run_says_that_it_does_not(
    tmp_path: Path, replies: list[Reply], code: int, structured: Any, formats: list[bool]
) -> None:
    (tmp_path / "schema.json").write_text(_NUMBER)
    with FakeOpenAI(replies) as server:
        command = Command(tmp_path, server.base_url)
        ended, report = command.run_json("go", "--json-schema", str(tmp_path / "schema.json"))
        sent = ["response_format" in body for body in server.bodies]
        first = server.bodies[0]["messages"][-1]["content"]

    assert (ended, report["structured"], sent) == (code, structured, formats)
    assert report["status"] == ("done" if code == 0 else "model_error")
    assert (report["error"] or "").startswith(
        "" if code == 0 else "The answer does not fit the schema of --json-schema."
    )
    assert '"required": ["n"]' in first
