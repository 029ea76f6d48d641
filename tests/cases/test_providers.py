import json
import socket
import time
from itertools import pairwise

import pytest

from tests.cases.bench import Bench, SetUp
from tests.fakes.openai_server import CUT, ERR, SSE, TC, TXT

_SECRET = "SECRET-9"  # noqa: S105 - made up
_BUSY = ERR(429, {"error": {"message": "rate limit reached"}}, {"Retry-After": "1"})


def _gaps(bench: Bench) -> list[float]:
    moments = [request.at for request in bench.server.requests]
    return [after - before for before, after in pairwise(moments)]


def test_a_busy_provider_is_waited_for_as_it_asks_and_the_user_sees_why(set_up: SetUp) -> None:
    bench = set_up(_BUSY, _BUSY, TXT("ok"))

    ran = bench.run()

    gaps = _gaps(bench)
    assert (ran.ending, len(gaps), min(gaps) >= 1) == ((0, "ok"), 2, True)
    told = [line for line in ran.err.splitlines() if "Waiting" in line]
    assert [("429" in line, "rate limit reached" in line) for line in told] == [(True, True)] * 2


def test_other_passing_failures_are_waited_for_alike(set_up: SetUp) -> None:
    overloaded = SSE(['RAW {"error":{"message":"overloaded","type":"overloaded_error"}}'])
    bench = set_up(
        ERR(503, "soon", {"Retry-After": "1"}),
        TC("c1", "ls", {}),
        ERR(529),
        TC("c2", "ls", {}),
        overloaded,
        TXT("ok"),
    )

    ran = bench.run()

    assert (ran.ending, len(bench.server.requests), _gaps(bench)[0] >= 1) == ((0, "ok"), 6, True)


def test_a_wait_of_an_hour_is_not_begun(set_up: SetUp) -> None:
    bench = set_up(ERR(429, "come back later", {"Retry-After": "3600"}))

    ran = bench.run()

    assert (ran.code, len(bench.server.requests), "3600" in ran.err) == (6, 1, True)


def test_a_refused_key_is_final_at_once_and_the_key_is_nowhere(set_up: SetUp) -> None:
    said = {
        "message": f"Incorrect API key provided: sk-te***, sent as Bearer sk-test-{_SECRET}",
        "code": "invalid_api_key",
    }
    bench = set_up(ERR(401, {"error": said}), env={"OPENAI_API_KEY": f"sk-test-{_SECRET}"})

    ran = bench.run()

    kept = [
        path.name for path in bench.folder.rglob("*") if path.is_file() and _SECRET.encode() in path.read_bytes()
    ]
    sent = [request.headers["authorization"] for request in bench.server.requests]
    assert (ran.code, sent, kept) == (6, [f"Bearer sk-test-{_SECRET}"], [])
    told = [word in ran.err for word in ("OPENAI_API_KEY", "GRAPH_AGENT_BASE_URL", _SECRET)]
    assert (told, _SECRET in ran.out) == ([True, True, False], False)


@pytest.mark.parametrize(("flags", "refused"), [(("--no-stream",), 0), ((), 1)], ids=["by flag", "by itself"])
def test_an_endpoint_that_cannot_stream_is_asked_for_whole_replies(
    set_up: SetUp, flags: tuple[str, ...], refused: int
) -> None:
    bench = set_up(TC("c1", "ls", {"path": "."}), TXT("ok"), refuse_stream=True)

    ran = bench.run("go", *flags)

    streamed = [bool(body.get("stream")) for body in bench.server.bodies]
    assert (ran.ending, streamed) == ((0, "ok"), [True] * refused + [False, False])


def _write(arguments: str) -> dict[str, object]:
    function = {"name": "write_file", "arguments": arguments}
    return {"t": [{"index": 0, "id": "c9", "type": "function", "function": function}]}


def test_a_reply_that_breaks_off_leaves_nothing_and_is_asked_for_again(set_up: SetUp) -> None:
    part = json.dumps({"file_path": "x.txt", "content": "par"})
    bench = set_up(
        CUT(SSE([_write(part[:-2])])),
        CUT(SSE([{"content": "half an ans"}, _write(part)])),
        TC("c1", "write_file", {"file_path": "x.txt", "content": "whole\n"}),
        SSE([{"content": "half"}], done=False),
        TXT("ok"),
    )

    ran = bench.run("go", "--output", "stream-json")

    events = [json.loads(line) for line in ran.out.splitlines()]
    run = [event["call_id"] for event in events if event["type"] == "tool_call_started"]
    later = json.dumps(bench.server.bodies[1:])
    assert (ran.code, events[-1]["answer"], bench.read("x.txt"), run) == (0, "ok", b"whole\n", ["c1"])
    assert ("c9" in later, "half" in later, len(bench.server.bodies), bench.server.faults) == (False, False, 5, [])


def test_a_whole_reply_that_breaks_off_is_asked_for_again(set_up: SetUp) -> None:
    write = TC("c1", "write_file", {"file_path": "x.txt", "content": "whole\n"})
    bench = set_up(CUT(write), write, TXT("ok"))

    ran = bench.run("go", "--no-stream")

    assert (ran.ending, bench.read("x.txt"), ran.err.count("was cut off"), len(bench.server.bodies)) == (
        (0, "ok"),
        b"whole\n",
        1,
        3,
    )


def test_an_empty_reply_is_asked_for_again_and_never_kept(set_up: SetUp) -> None:
    bench = set_up(TXT(""), SSE([{"content": None}, {"content": " \n"}], "stop"), TXT("ok"))

    ran = bench.run()

    assert (ran.ending, len(bench.server.bodies), bench.server.faults) == ((0, "ok"), 3, [])


def test_where_nobody_listens_the_run_ends_soon_and_can_be_gone_on_with(set_up: SetUp) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    bench = set_up(TXT("here"))
    began = time.monotonic()

    bench.command.extra_env = {"GRAPH_AGENT_BASE_URL": address}
    failed = bench.run("hello", "--thread", "t1")
    took = time.monotonic() - began
    bench.command.extra_env = {}
    ended = bench.run("--resume", "t1")

    asked = [message["content"] for message in bench.server.bodies[0]["messages"] if message["role"] == "user"]
    assert (failed.code, address in failed.err, took < 12, ended.ending) == (6, True, True, (0, "here"))
    assert asked == ["hello"]
