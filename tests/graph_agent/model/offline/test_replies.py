import pytest
from rich.cells import cell_len

from graph_agent.model.offline.grammar import NotUnderstood
from graph_agent.model.offline.plan import Report
from graph_agent.model.offline.replies import not_understood, notice, report, stopped_before


@pytest.mark.parametrize(
    ("ended", "english", "chinese"),
    [
        (Report("done", "ls", "a {b}"), "ls:\na {b}", "ls：\na {b}"),
        (Report("failed", "ls", "no"), "Not done: ls\nno", "未完成：ls\nno"),
        (
            Report("missing", "grep"),
            "Not done: the tool grep is not offered here.",
            "未完成：此处没有提供工具 grep。",
        ),
        (
            Report("absent", "f", "x"),
            "Nothing changed: f does not contain 'x'.",
            "没有改动：f 中没有 'x'。",
        ),
    ],
)
def test_each_end_of_a_command_is_told_in_both_languages(ended: Report, english: str, chinese: str) -> None:
    assert (report(ended, chinese=False), report(ended, chinese=True)) == (english, chinese)


def test_a_long_result_is_cut_and_says_how_much_is_left() -> None:
    told = report(Report("done", "f", "x" * 7_000), chinese=False)

    assert told == "f:\n" + "x" * 6_000 + "\n… 1000 more characters."


def test_what_did_not_run_is_counted() -> None:
    told = [stopped_before(1, chinese=False), stopped_before(2, chinese=False), stopped_before(2, chinese=True)]

    assert told == [
        "The 1 command after it did not run.",
        "The 2 commands after it did not run.",
        "因此后面的 2 个命令没有执行。",
    ]


def test_the_part_that_is_not_understood_is_quoted_and_a_long_one_cut() -> None:
    short = not_understood(NotUnderstood("a\x1bb"), "CONNECT", chinese=False)
    long = not_understood(NotUnderstood("y" * 100), "CONNECT", chinese=True)
    too_long = not_understood(NotUnderstood("z", is_too_long=True), "CONNECT", chinese=False)

    assert short.startswith("Not understood: 'a\\x1bb'. Nothing was done.\n\n")
    assert long.startswith("未能理解：'" + "y" * 80 + "…'")
    assert too_long.startswith("The message is too long for this mode. Nothing was done.")
    assert all(text.endswith("\n\nCONNECT") for text in (short, long, too_long))


def test_somebody_who_asks_for_help_is_not_told_that_it_was_not_understood() -> None:
    told = not_understood(NotUnderstood("帮助", asks_for_help=True), "CONNECT", chinese=True)

    assert (told.startswith("它能理解以下命令"), told.endswith("CONNECT")) == (True, True)


def test_a_near_command_is_offered() -> None:
    english = not_understood(NotUnderstood("raed a.txt"), "CONNECT", chinese=False)
    chinese = not_understood(NotUnderstood("删除 a.txt"), "CONNECT", chinese=True)

    assert english.startswith("Not understood: 'raed a.txt'. Nothing was done.\nDid you mean: read a.txt\n\n")
    assert chinese.startswith("未能理解：'删除 a.txt'。没有执行任何操作。\n您是否想说：运行 rm a.txt\n\n")


def test_the_list_of_commands_stands_in_two_columns_of_equal_width_in_either_language() -> None:
    for chinese in (False, True):
        told = not_understood(NotUnderstood("x"), "", chinese=chinese)
        rows = [line for line in told.splitlines() if line.startswith("  ")]

        assert (len(rows), all(cell_len(row.rsplit("  ", 1)[0]) == 34 for row in rows)) == (5, True)


def test_the_notice_names_the_mode_and_where_the_commands_are_listed() -> None:
    for chinese, word in ((False, "help"), (True, "帮助")):
        told = notice("offline command mode, no model", chinese=chinese)

        assert ("offline command mode, no model" in told, word in told) == (True, True)
