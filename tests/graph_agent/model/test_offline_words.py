import pytest

from graph_agent.model.offline_grammar import NotUnderstood
from graph_agent.model.offline_plan import Report
from graph_agent.model.offline_words import not_understood, notice, report, stopped_before


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


def test_the_notice_names_the_mode_and_how_to_connect() -> None:
    for chinese in (False, True):
        told = notice("offline command mode, no model", "CONNECT", chinese=chinese)

        assert "offline command mode, no model" in told
        assert told.endswith("\nCONNECT")
