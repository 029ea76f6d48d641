import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from urllib.parse import urlsplit

import pytest

from tests.cases.bench import SetUp
from tests.fakes.openai_server import CUT, ERR, SSE, TC, TXT, Reply
from tests.fakes.socks_proxy import socks_proxy

_SECRET = "SECRET-9"  # noqa: S105 - made up
_BUSY = ERR(429, {"error": {"message": "rate limit reached"}}, {"Retry-After": "1"})


def test_a_busy_provider_is_waited_for_as_it_asks_and_the_user_sees_why(set_up: SetUp) -> None:
    bench = set_up(_BUSY, _BUSY, TXT("ok"))

    ran = bench.run()

    moments = [request.at for request in bench.server.requests]
    gaps = [after - before for before, after in pairwise(moments)]
    assert (ran.ending, len(gaps), min(gaps) >= 1) == ((0, "ok"), 2, True)
    told = [line for line in ran.err.splitlines() if "Waiting" in line]
    assert [("429" in line, "rate limit reached" in line) for line in told] == [(True, True)] * 2


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


_LIMIT = "maximum context length is 8192 tokens, you requested 9001"
_OVERFLOWS: dict[str, Reply] = {
    "by a code": ERR(400, {"error": {"code": "context_length_exceeded", "message": _LIMIT}}),
    "within a stream": SSE(['RAW {"error":{"message":"prompt is too long: 9001 tokens > 8192 maximum"}}']),
}


@pytest.mark.parametrize("way", _OVERFLOWS)
def test_a_conversation_too_long_for_the_model_ends_the_turn_and_says_what_to_do(set_up: SetUp, way: str) -> None:
    bench = set_up(after=_OVERFLOWS[way])

    ran = bench.run("hi", "--thread", "t1")
    asked = len(bench.server.bodies)
    bench.server.after = TXT("ok")
    later = bench.run("shorter", "--resume", "t1")

    lengths = [len(str(body["messages"])) for body in bench.server.bodies[:asked]]
    assert (ran.code, ran.out, 1 <= asked <= 4, later.ending) == (6, "", True, (0, "ok"))
    assert (lengths, "9001" in str(bench.server.bodies)) == (sorted(lengths, reverse=True), False)
    assert ("too long" in ran.err, "larger model" in ran.err) == (True, True)


def test_turns_go_on_where_the_model_takes_no_more_and_each_refusal_is_followed_by_less(set_up: SetUp) -> None:
    bench = set_up(most_chars=30_000, after=TXT("ok"))

    ends = [bench.run(f"{number} " + "some words " * 364, "--thread", "t1").ending for number in range(10)]
    shown = bench.command.json("threads", "show", "t1")

    lengths = [len(str(body["messages"])) for body in bench.server.bodies]
    assert (ends, bench.server.faults) == ([(0, "ok")] * 10, [])
    assert 1 <= len(bench.server.too_long) <= 2
    assert all(lengths[at + 1] < lengths[at] for at in bench.server.too_long)
    assert str(shown).count("some words " * 364) == 10


def test_no_other_host_is_reached_and_nothing_waits_for_one(set_up: SetUp) -> None:
    with _recording_proxy() as (address, connections):
        variables = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        env = {**dict.fromkeys(variables, address), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        unknown = TC("c1", "ls", {"path": "."}, usage=None)
        bench = set_up(unknown, TXT("one", usage=None), unknown, TXT("two", usage=None), env=env)
        empty = bench.folder / "empty"
        empty.mkdir()
        caches = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "TIKTOKEN_CACHE_DIR", "HF_HOME"), str(empty))
        bench.command.extra_env = {**env, **caches, "GRAPH_AGENT_MODEL": "gpt-4o"}

        first = bench.run("go", "--thread", "t1")
        second = bench.run("more", "--resume", "t1")

    moments = [request.at for request in bench.server.requests]
    assert (first.ending, second.ending, connections, list(empty.iterdir())) == ((0, "one"), (0, "two"), [], [])
    assert (moments[1] - moments[0] < 1, moments[3] - moments[2] < 1) == (True, True)


def _only_proxy(name: str, address: str, exceptions: str) -> dict[str, str]:
    """The variables in both spellings: an empty one in small letters takes precedence over the other."""
    values = {
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), ""),
        "NO_PROXY": exceptions,
        name: address,
    }
    return values | {name.lower(): value for name, value in values.items()}


@pytest.mark.parametrize("name", ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"])
@pytest.mark.parametrize("exceptions", ["127.0.0.1", "127.0.0.1,localhost"])
def test_a_socks_proxy_that_does_not_apply_hinders_nothing_and_no_library_says_anything(
    set_up: SetUp, name: str, exceptions: str
) -> None:
    env = _only_proxy(name, "socks4://127.0.0.1:9", exceptions)
    bench = set_up(TXT("one"), env=env)
    ran = bench.run("go", "--thread", "t1")
    others = [bench.command("compact", "t1"), bench.command("model", "list")]

    assert ran.ending == (0, "one")
    said = [one.stdout + one.stderr for one in others]
    assert [word for word in ("langchain", "httpx", "Traceback", "Proxy") for text in said if word in text] == []


def test_a_socks_proxy_that_applies_is_used_and_doctor_says_what_fails(set_up: SetUp) -> None:
    with socks_proxy() as (address, asked):
        bench = set_up(TXT("one"), env=_only_proxy("ALL_PROXY", address, ""))
        assert bench.run("go", "--thread", "t1").ending == (0, "one")
        assert asked == [urlsplit(bench.server.base_url).netloc]
    bench.command.extra_env = _only_proxy("ALL_PROXY", "socks4://127.0.0.1:9", "")
    checks = {one["name"]: one for one in json.loads(bench.command("doctor", "--json").stdout)["checks"]}
    assert (checks["model"]["ok"], "NO_PROXY" in checks["model"]["hint"]) == (False, True)


@contextmanager
def _recording_proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy that notes what it is asked for and closes the connection."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def listen() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(200).decode("latin-1"))

        threading.Thread(target=listen, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", asked
        listening.shutdown(socket.SHUT_RDWR)
