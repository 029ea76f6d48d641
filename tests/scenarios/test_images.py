import base64
from pathlib import Path

from graph_agent.app.model_trial import red_square
from tests.cases.bench import Bench
from tests.fakes.openai_server import ERR, TC, TXT, FakeOpenAI

_PNG = red_square()
_SEEN = base64.b64encode(_PNG).decode()


def test_an_image_is_seen_in_every_later_request_and_lies_in_the_state_as_a_reference_only(tmp_path: Path) -> None:
    with FakeOpenAI([TC("c1", "read_file", '{"file_path": "a.png"}'), TXT("a cat"), TXT("still")]) as server:
        bench = Bench(tmp_path, server, {})
        bench.write(a_png=_PNG)

        bench.run("look", "--thread", "t")
        bench.run("again", "--thread", "t")

    roles = [[message["role"] for message in body["messages"]] for body in server.bodies]
    shown = [body["messages"][4]["content"][1]["image_url"]["url"] for body in server.bodies[1:]]
    assert roles[1] == ["system", "user", "assistant", "tool", "user"]
    assert roles[2] == [*roles[1], "assistant", "user"]
    assert shown == [f"data:image/png;base64,{_SEEN}"] * 2
    kept = [path.read_bytes() for path in bench.home.rglob("*") if path.is_file()]
    assert [_SEEN[:64].encode() in data for data in kept] == [False] * len(kept)


def test_a_model_that_takes_no_images_is_asked_without_them_and_that_is_told_and_remembered(tmp_path: Path) -> None:
    refused = ERR(400, {"error": {"message": "image_url is not supported by this model"}})
    script = [TC("c1", "read_file", '{"file_path": "a.png"}'), refused, TXT("a file"), TXT("still")]
    with FakeOpenAI(script, strict=True) as server:
        bench = Bench(tmp_path, server, {})
        bench.write(a_png=_PNG)

        ran = bench.run("look", "--thread", "t")
        again = bench.run("again", "--thread", "t")

    assert [_SEEN in str(body) for body in server.bodies] == [False, True, False, False]
    assert (ran.ending, again.ending) == ((0, "a file"), (0, "still"))
    assert "This model does not accept images" in ran.err
