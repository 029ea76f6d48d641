import http.client
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import CUT, ERR, SSE, TC, TXT, FakeOpenAI, Reply

_USER = {"role": "user", "content": "hi"}


def post(base_url: str, messages: list[dict[str, Any]], *, stream: bool = False) -> tuple[int, str]:
    body = json.dumps({"model": "m", "messages": messages, "stream": stream}).encode()
    request = urllib.request.Request(f"{base_url}/chat/completions", body)  # noqa: S310 -- a loopback address
    try:
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 -- a loopback address
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_entries_answer_requests_in_order_and_then_the_text_end() -> None:
    with FakeOpenAI([TC("c1", "ls", {"path": "."}), ERR(429, "slow down")]) as server:
        answers = [post(server.base_url, [_USER]) for _ in range(3)]

    messages = [json.loads(text) for _, text in answers]
    call = {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"path": "."}'}}
    assert messages[0]["choices"][0]["message"] == {"role": "assistant", "content": None, "tool_calls": [call]}
    assert answers[1] == (429, '{"error": {"message": "slow down"}}')
    assert messages[2]["choices"][0]["message"] == {"role": "assistant", "content": "end"}
    assert [body["messages"] for body in server.bodies] == [[_USER]] * 3


def test_a_stream_has_role_pieces_finish_and_done() -> None:
    with FakeOpenAI([TXT("hello")]) as server:
        _, text = post(server.base_url, [_USER], stream=True)

    events = [line.removeprefix("data: ") for line in text.splitlines() if line]
    deltas = [json.loads(event)["choices"][0]["delta"] for event in events[:-1]]
    assert deltas == [{"role": "assistant", "content": ""}, {"content": "he"}, {"content": "llo"}, {}]
    assert events[-1] == "[DONE]"


def test_an_exact_stream_is_sent_as_written() -> None:
    with FakeOpenAI([SSE(['RAW {"choices":[]}', {"t": [{"index": None}]}], finish="stop", done=False)]) as server:
        _, text = post(server.base_url, [_USER], stream=True)

    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line]
    assert [event["choices"] for event in events] == [
        [],
        [{"index": 0, "delta": {"tool_calls": [{"index": None}]}, "finish_reason": None}],
        [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    ]


def test_a_cut_body_is_shorter_than_it_announces() -> None:
    with FakeOpenAI([CUT(TXT("hello"))]) as server, pytest.raises(http.client.IncompleteRead):
        post(server.base_url, [_USER])


def test_strict_names_each_kind_of_invalid_history_and_keeps_the_entry() -> None:
    def call(call_id: str, arguments: str = "{}") -> dict[str, Any]:
        calls = [{"id": call_id, "type": "function", "function": {"name": "ls", "arguments": arguments}}]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    result = {"role": "tool", "tool_call_id": "c1", "content": "x"}
    invalid: list[list[dict[str, Any]]] = [
        [call("c1"), _USER],
        [call("c1")],
        [_USER, result],
        [call("c1"), result, result],
        [call("")],
        [call("c1"), result, call("c1"), result],
        [call("c1", '"{}"'), result],
        [{"role": "assistant", "content": ""}],
        [{"role": "user", "content": "\ud800"}],
    ]
    with FakeOpenAI([TXT("fine")], strict=True) as server:
        refused = [post(server.base_url, messages)[0] for messages in invalid]
        status, text = post(server.base_url, [_USER, call("c1"), result])

    assert (refused, len(server.faults)) == ([400] * len(invalid), len(invalid))
    assert (status, json.loads(text)["choices"][0]["message"]["content"]) == (200, "fine")


def test_by_history_gives_a_repeated_request_the_same_answer() -> None:
    replies: list[Reply] = [TXT("first"), TXT("second")]
    assistant = {"role": "assistant", "content": "first"}
    with FakeOpenAI(replies, by_history=True) as server:
        answers = [post(server.base_url, messages)[1] for messages in ([_USER], [_USER], [_USER, assistant, _USER])]

    texts = [json.loads(text)["choices"][0]["message"]["content"] for text in answers]
    assert texts == ["first", "first", "second"]


def test_the_process_prints_its_address_logs_bodies_and_ends_on_sigterm(tmp_path: Path) -> None:
    script, log = tmp_path / "script.json", tmp_path / "log.jsonl"
    script.write_text(json.dumps([{"calls": [["c1", "bash", {"command": "ls"}]]}, "done"]), encoding="utf-8")
    command = [sys.executable, "-m", "tests.fakes.openai_server", "--script", str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base_url = process.stdout.readline().strip()
        answers = [post(base_url, [_USER])[1] for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        code = process.wait(10)

    finishes = [json.loads(text)["choices"][0]["finish_reason"] for text in answers]
    bodies = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert (code, finishes) == (0, ["tool_calls", "stop"])
    assert [body["messages"] for body in bodies] == [[_USER]] * 2
