"""Colours that are readable on the terminal's background: for dark ones, for light ones, and with high contrast.

A theme says which of the 256 fixed colours stands for each of the terminal's own names. Without one, as on an
unknown background, those names keep the colours that the terminal gives them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "BACKGROUND_QUERY",
    "THEMES",
    "THEME_NAMES",
    "Rgb",
    "Theme",
    "ThemeName",
    "ansi_code",
    "choose_theme",
    "color_of",
    "contrast",
    "luminance",
    "parse_background",
    "rgb",
    "use_theme",
]

Rgb = tuple[int, int, int]
ThemeName = Literal["auto", "dark", "light", "high-contrast"]
THEME_NAMES: tuple[ThemeName, ...] = get_args(ThemeName)

BACKGROUND_QUERY = "\x1b]11;?\x1b\\"
_ANSWER = re.compile(r"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})")
_ANSI = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35", "cyan": "36", "dim": "2"}
_CUBE = (0, 95, 135, 175, 215, 255)
_LIGHT_PALETTE = (7, *range(9, 16))
"""Which colours of COLORFGBG are light ones; 8 is a dark grey."""


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours for a kind of background."""

    backgrounds: tuple[Rgb, ...]
    """The lightest dark ones, or the darkest light ones, on which it has its contrast."""
    contrast: float
    """Of each colour with these backgrounds, at least."""
    colors: Mapping[str, int]
    """The number of the colour, by the name that it stands for."""


_NAMES = ("red", "green", "yellow", "blue", "magenta", "cyan", "dim")
THEMES: Mapping[str, Theme] = {
    "dark": Theme(
        ((0, 0, 0), (0, 43, 54), (40, 42, 54), (46, 52, 64)),
        4.5,
        dict(zip(_NAMES, (210, 114, 221, 111, 183, 81, 248), strict=True)),
    ),
    "light": Theme(
        ((255, 255, 255), (253, 246, 227), (239, 241, 245)),
        4.5,
        dict(zip(_NAMES, (124, 22, 94, 19, 90, 24, 59), strict=True)),
    ),
    "high-contrast dark": Theme(
        ((0, 0, 0), (30, 30, 30)), 7.0, dict(zip(_NAMES, (217, 120, 227, 153, 219, 123, 252), strict=True))
    ),
    "high-contrast light": Theme(
        ((255, 255, 255), (250, 250, 250)), 7.0, dict(zip(_NAMES, (88, 22, 52, 18, 53, 17, 238), strict=True))
    ),
}

_current: Theme | None = None


def choose_theme(name: ThemeName, background: Rgb | None, environment: Mapping[str, str]) -> Theme | None:
    """The theme of a name on this background, which the environment may tell; None: the terminal's own colours."""
    term = environment.get("TERM", "")
    if "256" not in term and not environment.get("COLORTERM"):
        return None
    known = background or _from_environment(environment)
    if name == "auto" and known is None:
        return None
    is_light = known is not None and luminance(known) > luminance((128, 128, 128))
    brightness = "light" if is_light else "dark"
    match name:
        case "auto":
            return THEMES[brightness]
        case "high-contrast":
            return THEMES[f"high-contrast {brightness}"]
    return THEMES[name]


def parse_background(report: str) -> Rgb | None:
    """The colour in a terminal's answer to `BACKGROUND_QUERY`; None for any other report."""
    found = _ANSWER.match(report)
    if found is None:
        return None
    red, green, blue = (round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in found.groups())
    return red, green, blue


def use_theme(theme: Theme | None, console: "Console | None" = None) -> None:
    """Print in these colours from now on."""
    global _current  # There is one terminal, and whatever prints to it has its colours.
    before, _current = _current, theme
    if console is None:
        return
    from rich.theme import Theme as RichTheme  # tables need no rich

    if before is not None:
        console.pop_theme()
    if theme is not None:
        styles = {name: f"color({number})" for name, number in theme.colors.items()}
        styles |= {f"bold {name}": f"bold {style}" for name, style in styles.items()}
        console.push_theme(RichTheme({**styles, "bold white on red": "bold color(231) on color(124)"}))


def color_of(name: str) -> str | None:
    """The current theme's colour as `#rrggbb`; None where the terminal's own has the name."""
    if _current is None:
        return None
    red, green, blue = rgb(_current.colors[name])
    return f"#{red:02x}{green:02x}{blue:02x}"


def ansi_code(style: str) -> str:
    """The parameters of the terminal sequence of a style such as `bold red`."""
    bold, name = ("1;", style.removeprefix("bold ")) if style.startswith("bold ") else ("", style)
    if name == "bold":
        return "1"
    return f"{bold}{_ANSI[name]}" if _current is None else f"{bold}38;5;{_current.colors[name]}"


def rgb(number: int) -> Rgb:
    """A colour from 16 to 255 of the 256."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    red, rest = divmod(number - 16, 36)
    green, blue = divmod(rest, 6)
    return _CUBE[red], _CUBE[green], _CUBE[blue]


def luminance(color: Rgb) -> float:
    """Relative luminance after WCAG 2, from 0 to 1."""
    red, green, blue = (
        part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Rgb, other: Rgb) -> float:
    """Contrast ratio after WCAG 2, from 1 to 21."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _from_environment(environment: Mapping[str, str]) -> Rgb | None:
    """Black or white, as COLORFGBG tells: numbers of the terminal's 16 colours, the background last."""
    *_, last = environment.get("COLORFGBG", "").split(";")
    if not last.isdecimal() or int(last) > 15:
        return None
    return (255, 255, 255) if int(last) in _LIGHT_PALETTE else (0, 0, 0)
