import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from graph_agent.cli.prompts.terminal_output import NotifyMethod, chosen_method, notification
from graph_agent.wording import escape

_TEXT = "approval needed in shop"
_OSC9, _OSC777 = f"\x1b]9;{_TEXT}\x07", f"\x1b]777;notify;graph-agent;{_TEXT}\x07"


@pytest.mark.parametrize(
    ("environment", "method"),
    [
        ({"TERM_PROGRAM": "iTerm.app"}, "osc9"),
        ({"TERM_PROGRAM": "WezTerm"}, "osc9"),
        ({"TERM": "xterm-kitty", "KITTY_WINDOW_ID": "1"}, "osc9"),
        ({"WT_SESSION": "a-b"}, "osc9"),
        ({"TERM": "rxvt-unicode-256color"}, "osc777"),
        ({"TERM": "foot"}, "osc777"),
        ({"VTE_VERSION": "7600"}, "osc777"),
        ({"TERM": "xterm-256color"}, "bell"),
    ],
)
def test_the_method_is_chosen_by_the_terminal(environment: Mapping[str, str], method: NotifyMethod) -> None:
    assert chosen_method(environment) == method


@pytest.mark.parametrize(
    ("method", "passes", "environment", "sequence"),
    [
        ("osc9", "off", {}, _OSC9),
        ("osc777", "off", {}, _OSC777),
        ("bell", "off", {}, "\a"),
        ("auto", "off", {"KITTY_WINDOW_ID": "1"}, _OSC9),
        ("osc9", "off", {"TMUX": "/tmp/s,1,0"}, "\a"),
        ("osc9", "on", {"TMUX": "/tmp/s,1,0"}, f"\x1bPtmux;\x1b{_OSC9}\x1b\\"),
        ("osc777", "all", {"TMUX": "/tmp/s,1,0"}, f"\x1bPtmux;\x1b{_OSC777}\x1b\\"),
        ("osc9", "on", {"STY": "1.pts"}, "\a"),
    ],
)
def test_a_notification_goes_through_tmux_only_where_tmux_lets_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: NotifyMethod,
    passes: str,
    environment: Mapping[str, str],
    sequence: str,
) -> None:
    tmux = tmp_path / "tmux"
    tmux.write_text(f"#!/bin/sh\necho {passes}\n")
    tmux.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

    assert notification(method, "approval needed", "shop", environment) == sequence


def test_a_folder_cannot_put_a_sequence_into_the_notification(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    text = notification("osc9", "finished", "a\x07\x1b]0;x\x07;9 " + "b" * 99, {})

    assert (text[:4], text[-1], text.count("\x07"), text.count("\x1b"), len(text) < 90) == (
        "\x1b]9;",
        "\x07",
        1,
        1,
        True,
    )
    assert escape(text[4:-1]) == text[4:-1]
