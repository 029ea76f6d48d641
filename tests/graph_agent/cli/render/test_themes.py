import io
from collections.abc import Iterator, Mapping

import pytest
from rich.console import Console

from graph_agent.cli.prompts.keyboard import KeyDecoder
from graph_agent.cli.render.markdown import MarkdownStream
from graph_agent.cli.render.themes import (
    THEMES,
    Rgb,
    Theme,
    ThemeName,
    ansi_code,
    choose_theme,
    contrast,
    parse_background,
    rgb,
    use_theme,
)

_LIGHT, _DARK = (255, 255, 255), (0, 0, 0)
_256 = {"TERM": "xterm-256color"}


@pytest.fixture(autouse=True)
def no_theme_is_left_behind() -> Iterator[None]:
    yield
    use_theme(None)


@pytest.mark.parametrize("name", THEMES)
def test_every_colour_of_a_theme_can_be_read_on_its_backgrounds(name: str) -> None:
    theme = THEMES[name]
    pairs = {
        color: min(contrast(rgb(number), background) for background in theme.backgrounds)
        for color, number in theme.colors.items()
    }

    assert theme.contrast == (7.0 if name.startswith("high") else 4.5)
    assert {color: ratio for color, ratio in pairs.items() if ratio < theme.contrast} == {}
    assert contrast(rgb(231), rgb(124)) >= 7  # of a warning, which has a background of its own


def test_contrast_is_that_of_the_standard() -> None:
    assert round(contrast(_LIGHT, _DARK), 2) == 21
    assert round(contrast((119, 119, 119), _LIGHT), 2) == 4.48


@pytest.mark.parametrize(
    ("name", "background", "environment", "theme"),
    [
        ("auto", None, _256, None),
        ("auto", _LIGHT, _256, "light"),
        ("auto", (30, 30, 46), _256, "dark"),
        ("auto", None, {**_256, "COLORFGBG": "0;15"}, "light"),
        ("auto", None, {**_256, "COLORFGBG": "15;default;0"}, "dark"),
        ("auto", None, {**_256, "COLORFGBG": "15;default"}, None),
        ("auto", _DARK, {**_256, "COLORFGBG": "0;15"}, "dark"),
        ("light", _DARK, _256, "light"),
        ("dark", None, _256, "dark"),
        ("high-contrast", None, _256, "high-contrast dark"),
        ("high-contrast", _LIGHT, _256, "high-contrast light"),
        ("dark", _DARK, {"TERM": "xterm"}, None),
        ("dark", _DARK, {"TERM": "xterm-kitty", "COLORTERM": "truecolor"}, "dark"),
    ],
)
def test_the_theme_is_chosen_by_setting_and_background(
    name: ThemeName, background: Rgb | None, environment: Mapping[str, str], theme: str | None
) -> None:
    assert choose_theme(name, background, environment) == (None if theme is None else THEMES[theme])


@pytest.mark.parametrize(
    ("report", "color"),
    [
        ("\x1b]11;rgb:1e1e/1e1e/2e2e\x07", (30, 30, 46)),
        ("\x1b]11;rgb:ff/ff/ff\x1b\\", _LIGHT),
        ("\x1b]11;rgba:0000/8080/ffff/ffff\x1b\\", (0, 128, 255)),
        ("\x1b]10;rgb:ff/ff/ff\x07", None),
        ("\x1b[I", None),
    ],
)
def test_the_answer_of_the_terminal_comes_between_keys_and_loses_none(report: str, color: Rgb | None) -> None:
    keys: list[str] = []
    reports: list[str] = []
    decoder = KeyDecoder(lambda press: keys.append(press.key), reports.append)

    for character in f"ab{report}cd":
        decoder.feed(character)

    assert (keys, [parse_background(one) for one in reports]) == (list("abcd"), [color])


def _printed(theme: Theme | None) -> str:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="256", width=60)
    use_theme(theme, console)
    for style in ("cyan", "dim", "bold yellow", "bold white on red"):
        console.print("x", style=style)
    markdown = MarkdownStream(console)
    for line in [*markdown.add("`code`\n\n```python\ndef f(): return 'a'\n```\n\n"), *markdown.end()]:
        console.print(line)
    use_theme(None, console)
    console.print("x", style="cyan")
    return stream.getvalue() + ansi_code("bold red")


def test_what_is_printed_has_the_colours_of_the_theme_and_none_of_the_terminals() -> None:
    plain, light = _printed(None), _printed(THEMES["light"])

    assert all(code in plain for code in ("\x1b[36mx", "\x1b[2mx", "\x1b[1;33mx", "\x1b[1;37;41mx"))
    assert all(f"38;5;{number}mx" in light for number in (24, 59, 94))
    assert "\x1b[1;38;5;231;48;5;124mx" in light
    assert [code for code in range(31, 38) if f"[{code}m" in light.removesuffix("\x1b[36mx\x1b[0m\n1;31")] == []
    assert light.endswith("\x1b[36mx\x1b[0m\n1;31")
