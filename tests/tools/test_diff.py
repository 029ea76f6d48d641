import random

import pytest

import tools.diff as diffing
from tools.diff import diff_texts

_DIGESTS = ("0" * 64, "1" * 64)


def test_a_change_is_shown_with_its_surroundings() -> None:
    diff = diff_texts("f", "a\nb\nc\n", "a\nB\nc\nd\n", digests=_DIGESTS)

    assert diff.unified == "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n"
    assert (diff.added, diff.removed) == (2, 1)


def test_a_new_file_comes_from_nothing() -> None:
    diff = diff_texts("f", None, "a\n", digests=(None, "1" * 64))

    assert diff.unified == "--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n"


def test_a_missing_final_newline_is_told() -> None:
    diff = diff_texts("f", "a", "a\n", digests=_DIGESTS)

    assert diff.unified == "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"


def test_no_change_is_an_empty_diff() -> None:
    assert diff_texts("f", "a\n", "a\n", digests=_DIGESTS).unified == ""


def test_a_huge_change_is_one_exact_hunk() -> None:
    old = [f"{number}\n" for number in range(5000)]
    new = [*old[:100], "new\n", *old[102:]]

    diff = diff_texts("f", "".join(old), "".join(new), digests=_DIGESTS)

    assert diff.unified == ("--- f\n+++ f\n@@ -98,8 +98,7 @@\n 97\n 98\n 99\n-100\n-101\n+new\n 102\n 103\n 104\n")
    assert (diff.added, diff.removed) == (1, 2)


def test_of_large_texts_only_the_lines_around_the_change_are_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = "".join(f"line {number}\n" for number in range(50_000))
    split: list[int] = []

    def lines(text: str) -> list[str]:
        split.append(len(text))
        return text.splitlines(keepends=True)

    monkeypatch.setattr(diffing, "_lines", lines)

    shown = diff_texts("a", before, before.replace("line 25000\n", "changed\n"), digests=("1", "2"))

    assert (shown.added, shown.removed) == (1, 1)
    assert "@@ -24998,7 +24998,7 @@\n line 24997\n" in shown.unified
    assert sum(split) < 500


def test_a_large_text_gives_the_same_diff_whatever_is_left_out_of_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffing, "_FINE_LINES", 0)
    chance = random.Random(7)
    for _ in range(3_000):
        a, b, c, d = ("".join(chance.choices("ab\n\n", k=chance.randrange(20))) for _ in range(4))
        old, new = f"{a}{b}\n{c}", f"{a}{d}\n{c}"
        whole = diffing._coarse(diffing._Excerpt(0, diffing._lines(old), diffing._lines(new)))
        assert diffing._coarse(diffing._excerpt(old, new)) == whole, (old, new)
