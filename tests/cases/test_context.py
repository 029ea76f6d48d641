import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cases.bench import SetUp
from tests.fakes.openai_server import ERR, SSE, TC, TXT, Reply

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
