import re
from pathlib import Path

from docs._generate.pages import PAGES
from tests.architecture.checkout import ROOT, expect_none

LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
SPOKEN_COMMAND = re.compile(r"`graph-agent ((?:[a-z]+ ?)+)")
LISTED_COMMAND = re.compile(r"^## graph-agent (.+)$", re.MULTILINE)


def written_pages() -> list[str]:
    deep = (path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return sorted({"README.md", "README.zh-CN.md", "CONTRIBUTING.md", "CHANGELOG.md", *deep})


def dead_links(root: Path, page: str) -> list[str]:
    targets = LINK.findall((root / page).read_text(encoding="utf-8"))
    return [f"{page}: {target}" for target in targets if not (root / page).parent.joinpath(target).exists()]


def unknown_commands(text: str, commands: set[str]) -> list[str]:
    spoken = {words.strip() for words in SPOKEN_COMMAND.findall(text)}
    return sorted(words for words in spoken if not any(words == c or words.startswith(f"{c} ") for c in commands))


def test_every_link_in_the_docs_leads_somewhere() -> None:
    expect_none(line for page in written_pages() for line in dead_links(ROOT, page))


def test_the_docs_speak_only_of_commands_that_exist() -> None:
    commands = set(LISTED_COMMAND.findall(PAGES["docs/commands.md"]()))
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in written_pages() if page not in PAGES}

    expect_none(f"{page}: {words}" for page, text in texts.items() for words in unknown_commands(text, commands))


def test_a_dead_link_is_noticed_from_the_page_it_stands_on(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("[b](b.md) [top](../LICENSE#top) [web](https://example.test/x) [here](#a)")
    (tmp_path / "LICENSE").touch()

    assert dead_links(tmp_path, "docs/a.md") == ["docs/a.md: b.md"]


def test_a_command_that_does_not_exist_is_noticed() -> None:
    text = "`graph-agent threads list`, `graph-agent run PROMPT`, `graph-agent fly away`, `graph-agent`"

    assert unknown_commands(text, {"threads", "threads list", "run"}) == ["fly away"]
