from tools.diff import diff_of

_DIGESTS = ("0" * 64, "1" * 64)


def test_a_change_is_shown_with_its_surroundings() -> None:
    diff = diff_of("f", "a\nb\nc\n", "a\nB\nc\nd\n", digests=_DIGESTS)

    assert diff.unified == "--- f\n+++ f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n"
    assert (diff.added, diff.removed) == (2, 1)


def test_a_new_file_comes_from_nothing() -> None:
    diff = diff_of("f", None, "a\n", digests=(None, "1" * 64))

    assert diff.unified == "--- /dev/null\n+++ f\n@@ -0,0 +1 @@\n+a\n"


def test_a_missing_final_newline_is_told() -> None:
    diff = diff_of("f", "a", "a\n", digests=_DIGESTS)

    assert diff.unified == "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"


def test_no_change_is_an_empty_diff() -> None:
    assert diff_of("f", "a\n", "a\n", digests=_DIGESTS).unified == ""


def test_a_huge_change_is_one_exact_hunk() -> None:
    old = [f"{number}\n" for number in range(5000)]
    new = [*old[:100], "new\n", *old[102:]]

    diff = diff_of("f", "".join(old), "".join(new), digests=_DIGESTS)

    assert diff.unified == ("--- f\n+++ f\n@@ -98,8 +98,7 @@\n 97\n 98\n 99\n-100\n-101\n+new\n 102\n 103\n 104\n")
    assert (diff.added, diff.removed) == (1, 2)
