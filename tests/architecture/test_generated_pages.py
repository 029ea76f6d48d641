from pathlib import Path

from docs._generate.pages import PAGES, write_pages
from tests.architecture.checkout import ROOT


def test_generated_pages_hold_what_the_code_says() -> None:
    stale = [path for path, render in PAGES.items() if (ROOT / path).read_text(encoding="utf-8") != render()]

    assert stale == [], "run `make docs`"


def test_writing_the_pages_brings_back_what_was_lost_and_then_rests(tmp_path: Path) -> None:
    for path in PAGES:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("stale")

    first, second = write_pages(tmp_path), write_pages(tmp_path)

    assert (first, second) == (list(PAGES), [])
    assert {path: (tmp_path / path).read_text(encoding="utf-8") for path in PAGES} == {
        path: render() for path, render in PAGES.items()
    }
