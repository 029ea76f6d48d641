from graph_agent.cli.render.console import added_text, diff_lines

_CHANGE = """--- a.txt
+++ a.txt
@@ -3,3 +3,3 @@
 same
-old [red]
+new\t\x1b[2J
 tail
"""
_NEW = """--- /dev/null
+++ a.txt
@@ -0,0 +1,2 @@
+one
+++ two
"""


def test_lines_carry_the_number_of_the_side_they_are_on() -> None:
    assert [line.plain for line in diff_lines(_CHANGE, 80)] == [
        "       --- a.txt",
        "       +++ a.txt",
        "       @@ -3,3 +3,3 @@",
        "     3  same",
        "     4 -old [red]",
        "     4 +new→   \\x1b[2J",
        "     5  tail",
    ]


def test_added_is_green_and_removed_is_red() -> None:
    styles = {line.plain[7:11]: {str(span.style) for span in line.spans} for line in diff_lines(_CHANGE, 80)}

    assert ("red" in styles["-old"], "green" in styles["+new"], "green" in styles[" sam"]) == (True, True, False)


def test_a_new_file_can_be_read_off_its_diff() -> None:
    assert added_text(_NEW) == "one\n++ two"


def test_a_diff_that_shows_only_a_part_gives_no_text() -> None:
    assert [added_text(_CHANGE), added_text(""), added_text("@@ -1,0 +2,1 @@\n+x\n")] == [None, None, None]


def test_a_missing_last_line_feed_stays_visible() -> None:
    lines = diff_lines("@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", 80)

    assert [line.plain for line in lines][1:] == ["     1 +x", "       \\ No newline at end of file"]
