"""The comparison page: points, agents, a source for every cell, and counts that follow from its tables."""

import re

from tests.architecture.checkout import ROOT, expect_none

AGENTS = ["graph-agent", "Claude Code", "codex", "opencode", "mistral-vibe", "gemini-cli"]
LEVELS = {"yes": 2, "partly": 1, "no": 0, "not found": 0}
CELL = re.compile(r"(yes|partly|not found|no)(?:: [^\[]+)? \[(\d+(?:, \d+)*)\]")
COUNTS = re.compile(r"<!-- counts -->\n(.*?)\n<!-- /counts -->", re.DOTALL)


def page() -> str:
    return (ROOT / "docs/comparison.md").read_text(encoding="utf-8")


def rows(text: str) -> list[list[str]]:
    """The cells of every point, the point first."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in lines if len(cells) == len(AGENTS) + 1 and cells[0] not in ("point", "---")]


def badly_formed(text: str) -> list[str]:
    sources = set(re.findall(r"^(\d+)\. ", text.partition("\n## Sources")[2], re.MULTILINE))
    bad = []
    for point, *cells in rows(text):
        for agent, cell in zip(AGENTS, cells, strict=True):
            found = CELL.fullmatch(cell)
            if found is None or not set(found[2].split(", ")) <= sources:
                bad.append(f"{point}, {agent}: {cell}")
    return bad


def standing(mark: int, others: list[int]) -> str:
    if mark > max(others):
        return "better"
    if mark == 0:
        return "missing"
    return "equal" if mark == max(others) else "worse"


def counts(text: str) -> str:
    levels = [[LEVELS[cell.split(" [")[0].split(":")[0]] for cell in cells] for _, *cells in rows(text)]
    found = [standing(mine, others) for mine, *others in levels]
    each = ", ".join(f"{name} {found.count(name)}" for name in ("better", "equal", "worse", "missing"))
    return f"Of {len(found)} points: {each}."


def test_every_cell_of_the_comparison_has_a_mark_and_a_source_that_is_listed() -> None:
    text = page()

    assert len(rows(text)) >= 72
    assert f"| point | {' | '.join(AGENTS)} |" in text
    expect_none(badly_formed(text))


def test_the_counts_of_the_comparison_follow_from_its_tables() -> None:
    stated = COUNTS.search(page())

    assert stated is not None
    assert stated[1] == counts(page())


def test_a_cell_without_a_source_or_with_an_unknown_one_is_noticed() -> None:
    cells = "yes [1] | yes | no: x [9] | partly [1] | not found [1] | no [1]"
    text = f"| a | {cells} |\n\n## Sources\n\n1. here\n"

    assert badly_formed(text) == ["a, Claude Code: yes", "a, codex: no: x [9]"]
