import re
from dataclasses import dataclass

from tests.architecture.checkout import ROOT

FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
ROW = re.compile(r"^\| (`.*?) \| ", re.MULTILINE)
SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class Page:
    headings: tuple[str, ...]
    blocks: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    spans: frozenset[str]


def page(text: str) -> Page:
    prose = FENCE.sub("", text)
    return Page(
        tuple(HEADING.findall(prose)),
        tuple(FENCE.findall(text)),
        tuple(tuple(SPAN.findall(row)) for row in ROW.findall(prose)),
        frozenset(" ".join(span.split()) for span in SPAN.findall(prose)),
    )


def test_both_readmes_have_the_same_headings_commands_and_code() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md"))

    assert page(chinese) == page(english)


def test_a_command_or_block_that_only_one_page_has_is_noticed() -> None:
    text = "# A\n\n```sh\nmake run\n```\n\n| `fly` | flies |\n"

    assert page(text) == page(text.replace("flies", "飞").replace("# A", "# 甲"))
    assert page(text) != page(text.replace("fly`", "walk`"))
    assert page(text) != page(text.replace("make run", "make test"))
    assert page(text) != page(text.replace("# A", "## A"))
