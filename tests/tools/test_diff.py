import random

import pytest

import tools.diff as diffing
from tools.diff import diff_texts

_DIGESTS = ("0" * 64, "1" * 64)


_LINES = [f"{number}\n" for number in range(5000)]


@pytest.mark.parametrize(
    ("before", "after", "body", "counts"),
    [
        ("a\nb\nc\n", "a\nB\nc\nd\n", "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n", (2, 1)),
        (None, "a\n", "--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n", (1, 0)),
        ("a", "a\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", (1, 1)),
        ("a\n", "a\n", "", (0, 0)),
        (
            "".join(_LINES),
            "".join([*_LINES[:100], "new\n", *_LINES[102:]]),
            "--- f\n+++ f\n@@ -98,8 +98,7 @@\n 97\n 98\n 99\n-100\n-101\n+new\n 102\n 103\n 104\n",
            (1, 2),
        ),
    ],
    ids=["changed", "new-file", "no-final-newline", "unchanged", "many-lines"],
)
def test_a_change_is_shown_with_its_surroundings(
    before: str | None, after: str, body: str, counts: tuple[int, int]
) -> None:
    diff = diff_texts("f", before, after, digests=_DIGESTS)

    assert (diff.unified, (diff.added, diff.removed)) == (body, counts)


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
