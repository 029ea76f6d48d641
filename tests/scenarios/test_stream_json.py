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
