import os
from pathlib import Path

from graph_agent.model.openai.capabilities import Dialect, LearnedDialects

URL = "http://me:secret@localhost:1/v1"
PROMPT = Dialect(calls_functions=False, streams=False)


def test_what_an_endpoint_takes_is_known_to_the_next_process_by_address_and_model(tmp_path: Path) -> None:
    path = tmp_path / "data" / "learned.json"
    LearnedDialects(path).keep(URL, "m", PROMPT)
    later = LearnedDialects(path)

    assert (later.of(URL, "m"), later.of(URL, "other"), later.of("http://x/v1", "m")) == (
        PROMPT,
        Dialect(),
        Dialect(),
    )
    assert "secret" not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_usual_again_is_forgotten(tmp_path: Path) -> None:
    learned = LearnedDialects(tmp_path / "learned.json")
    learned.keep(URL, "m", PROMPT)
    learned.keep(URL, "m", Dialect())

    assert (tmp_path / "learned.json").read_text() == "{}\n"


def test_a_file_that_cannot_be_used_is_as_none(tmp_path: Path) -> None:
    for number, text in enumerate(["", "{", "[]", '{"m @ http://me@x/v1": 3}', "[" * 100_000]):
        path = tmp_path / str(number)
        path.write_text(text)
        assert LearnedDialects(path).of("http://x/v1", "m") == Dialect()
    os.mkfifo(tmp_path / "pipe")
    assert LearnedDialects(tmp_path / "pipe").of("http://x/v1", "m") == Dialect()


def test_nothing_is_written_without_a_place_and_a_place_that_takes_nothing_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    LearnedDialects().keep(URL, "m", PROMPT)
    LearnedDialects(tmp_path / "file" / "learned.json").keep(URL, "m", PROMPT)

    assert LearnedDialects().of(URL, "m") == Dialect()


def test_a_value_that_is_no_truth_value_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    path.write_text('{"m @ http://x/v1": {"streams": "no", "takes_null": false, "newer": true}}')

    assert LearnedDialects(path).of("http://x/v1", "m") == Dialect(takes_null=False)
