import pytest

from graph_agent.cli.render.approval_page import mixed_alphabets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("g\u0456t status", [("g\u0456t", "U+0456 CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I")]),
        ("r\u039c r\u039c", [("r\u039c", "U+039C GREEK CAPITAL LETTER MU")]),
        ("привет мир, größe, naïve, 漢字kana, x²", []),
        ("plain", []),
    ],
)
def test_words_that_mix_latin_letters_with_others_are_told(text: str, found: list[tuple[str, str]]) -> None:
    assert list(mixed_alphabets({"command": text, "timeout": 5})) == found
