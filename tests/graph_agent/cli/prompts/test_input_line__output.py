import sys

import pytest

from graph_agent.cli.prompts.input_line import paste_in_brackets, paste_plainly, prompt_output


def test_brackets_around_pastes_stay_on_until_the_terminal_is_given_back_or_lent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    output = prompt_output()

    with paste_in_brackets():
        output.disable_bracketed_paste()
        output.flush()
        with paste_plainly():
            sys.stdout.write("editor\n")
        sys.stdout.write("chat\n")

    assert capsys.readouterr().out == "\x1b[?2004h\x1b[?2004leditor\n\x1b[?2004hchat\n\x1b[?2004l"


def test_a_dumb_terminal_is_sent_no_mode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")

    with paste_in_brackets(), paste_plainly():
        sys.stdout.write("chat\n")

    assert capsys.readouterr().out == "chat\n"
