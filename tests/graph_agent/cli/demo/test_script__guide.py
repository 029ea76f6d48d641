from io import StringIO

import pytest
import typer

from graph_agent.cli.demo.script import DemoNarrator

KEYS = {"r": "[r]etry", "d": "[d]one", "c": "[c]ancel"}


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> DemoNarrator:
    monkeypatch.setattr("sys.stdin", StringIO(text))
    return DemoNarrator(is_asking=True)


def test_where_nobody_is_asked_it_answers_and_shows_what(capsys: pytest.CaptureFixture[str]) -> None:
    key = DemoNarrator(is_asking=False).choose("And now?", KEYS, "d")

    assert (key, capsys.readouterr().out) == ("d", "\nAnd now?\n[r]etry  [d]one  [c]ancel > d\n")


def test_a_person_is_asked_until_a_key_is_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key = typed(monkeypatch, "\nx\nRetry\n").choose("And now?", KEYS, "d")

    assert key == "r"
    assert capsys.readouterr().out.count("Type r, d or c, then Enter.") == 2


def test_a_person_says_when_a_step_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed(monkeypatch, "\n").title("1/2  One.")
    DemoNarrator(is_asking=False).title("2/2  Two.")

    assert capsys.readouterr().out == "\n[Enter] to continue > \n1/2  One.\n\n2/2  Two.\n"


def test_the_end_of_the_input_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(typer.Exit) as leaving:
        typed(monkeypatch, "").choose("And now?", KEYS, "d")

    assert leaving.value.exit_code == 130


def test_remarks_keep_to_eighty_columns_and_to_fewer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        DemoNarrator(is_asking=False).say("word " * 40)

    lines = capsys.readouterr().out.split("\n\n")
    assert [max(len(line) for line in part.splitlines()) for part in lines if part.strip()] == [39, 79]
