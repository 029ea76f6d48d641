import os
from pathlib import Path

from graph_agent.model.openai.capabilities import Capabilities, CapabilityStore

URL = "http://me:secret@localhost:1/v1"
PROMPT = Capabilities(calls_functions=False, streams=False)


def test_what_an_endpoint_takes_is_known_to_the_next_process_by_address_and_model(tmp_path: Path) -> None:
    path = tmp_path / "data" / "learned.json"
    CapabilityStore(path).keep(URL, "m", PROMPT)
    later = CapabilityStore(path)

    assert (later.of(URL, "m"), later.of(URL, "other"), later.of("http://x/v1", "m")) == (
        PROMPT,
        Capabilities(),
        Capabilities(),
    )
    assert "secret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_usual_again_is_forgotten(tmp_path: Path) -> None:
    learned = CapabilityStore(tmp_path / "learned.json")
    learned.keep(URL, "m", PROMPT)
    learned.keep(URL, "m", Capabilities())

    assert (tmp_path / "learned.json").read_text() == "{}\n"


def test_a_file_that_cannot_be_used_is_as_none(tmp_path: Path) -> None:
    for number, text in enumerate(["", "{", "[]", '{"m @ http://me@x/v1": 3}', "[" * 100_000]):
        path = tmp_path / str(number)
        path.write_text(text)
        assert CapabilityStore(path).of("http://x/v1", "m") == Capabilities()
    os.mkfifo(tmp_path / "pipe")
    assert CapabilityStore(tmp_path / "pipe").of("http://x/v1", "m") == Capabilities()


def test_nothing_is_written_without_a_place_and_a_place_that_takes_nothing_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    CapabilityStore().keep(URL, "m", PROMPT)
    CapabilityStore(tmp_path / "file" / "learned.json").keep(URL, "m", PROMPT)

    assert CapabilityStore().of(URL, "m") == Capabilities()


def test_a_value_that_is_no_truth_value_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    path.write_text('{"m @ http://x/v1": {"streams": "no", "takes_null": false, "newer": true}}')

    assert CapabilityStore(path).of("http://x/v1", "m") == Capabilities(takes_null=False)
