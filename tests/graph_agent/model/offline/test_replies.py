import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from graph_agent.model.offline.parser import NotUnderstood
from graph_agent.model.offline.plan import Outcome
from graph_agent.model.offline.replies import format_help, format_notice, format_outcome, format_skipped, suggest


@pytest.mark.parametrize(
    ("ended", "english", "chinese"),
    [
        (Outcome("done", "ls", "a {b}"), "ls:\na {b}", "ls：\na {b}"),
        (Outcome("failed", "ls", "no"), "Not done: ls\nno", "未完成：ls\nno"),
        (
            Outcome("missing", "grep"),
            "Not done: the tool grep is not available here.",
            "未完成：此处没有提供工具 grep。",
        ),
        (
            Outcome("planning", "bash"),
            "Not done: plan mode only reads, and no model is connected to plan. /mode default allows bash.",
            "未完成：计划模式只读，且没有连接可制定计划的模型。“/mode default”可使用 bash。",
        ),
        (
            Outcome("absent", "f", "x"),
            "Nothing changed: f does not contain 'x'.",
            "没有改动：f 中没有 'x'。",
        ),
        (
            Outcome("unreadable", "f"),
            "Not done: f cannot be shown completely, and rewriting it could damage it. Use `run COMMAND`.",
            "未完成：f 无法完整显示，重写可能损坏它。请改用“运行 命令”。",
        ),
    ],
)
def test_each_outcome_is_reported_in_both_languages(ended: Outcome, english: str, chinese: str) -> None:
    assert (format_outcome(ended, chinese=False), format_outcome(ended, chinese=True)) == (english, chinese)


def test_a_long_result_is_cut_and_says_how_much_is_left() -> None:
    told = format_outcome(Outcome("done", "f", "x" * 7_000), chinese=False)

    assert told == "f:\n" + "x" * 6_000 + "\n… 1000 more characters."


def test_skipped_commands_are_counted() -> None:
    told = [format_skipped(1, chinese=False), format_skipped(2, chinese=False), format_skipped(2, chinese=True)]

    assert told == [
        "The 1 command after it did not run.",
        "The 2 commands after it did not run.",
        "因此后面的 2 个命令没有执行。",
    ]


def test_the_part_that_is_not_understood_is_quoted_and_a_long_one_cut() -> None:
    short = format_help(NotUnderstood("a\x1bb"), "CONNECT", chinese=False)
    near = format_help(NotUnderstood("raed a.txt"), "CONNECT", chinese=False)
    long = format_help(NotUnderstood("y" * 100), "CONNECT", chinese=True)
    too_long = format_help(NotUnderstood("z", is_too_long=True), "CONNECT", chinese=False)

    assert short.startswith("Not understood: 'a\\x1bb'. Nothing was done.\n\n")
    assert long.startswith("未能理解：'" + "y" * 80 + "…'")
    assert too_long.startswith("The message is too long for this mode. Nothing was done.")
    assert near.startswith("Not understood: 'raed a.txt'. Nothing was done.\nDid you mean: read a.txt\n\n")
    assert all(text.endswith("\n\nCONNECT") for text in (short, long, too_long))
    again = format_help(NotUnderstood("raed a.txt"), "CONNECT", chinese=False, is_known=True)
    assert again.endswith('\nDid you mean: read a.txt\nType "help" for the commands.')
    known = format_help(NotUnderstood("x y"), "CONNECT", chinese=False, is_known=True)
    assert known == "Not understood: 'x y'. Nothing was done. Type \"help\" for the commands."


def test_somebody_who_asks_for_help_is_not_told_that_it_was_format_help() -> None:
    told = format_help(NotUnderstood("帮助", asks_for_help=True), "CONNECT", chinese=True)

    assert (told.startswith("可用命令"), told.endswith("CONNECT")) == (True, True)


def test_the_commands_are_listed_in_two_columns_of_equal_width_in_either_language() -> None:
    for chinese in (False, True):
        told = format_help(NotUnderstood("x"), "", chinese=chinese)
        rows = [line for line in told.splitlines() if line.startswith("  ")]

        assert (len(rows), all(cell_len(row.rsplit("  ", 1)[0]) == 34 for row in rows)) == (5, True)


def test_the_notice_names_the_mode_and_how_to_list_the_commands() -> None:
    for chinese, word in ((False, "help"), (True, "帮助")):
        told = format_notice("offline mode, no model", chinese=chinese)

        assert ("offline mode, no model" in told, word in told) == (True, True)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("read my file.txt", 'read "my file.txt"'),
        ("please create my file.txt with hello", 'create "my file.txt" with hello'),
        ("append hello to my file.txt", 'append hello to "my file.txt"'),
        ("读取 我的 文件.txt", '读取 "我的 文件.txt"'),
        ("raed a.txt", "read a.txt"),
        ("serach TODO in src", "search TODO in src"),
        ("git status", "run git status"),
        ("ls -la", "run ls -la"),
        ("grep -rn foo src", "run grep -rn foo src"),
        ("delete a.txt", "run rm a.txt"),
        ("rename a.txt to b.txt", "run mv a.txt b.txt"),
        ("删除 a.txt", "运行 rm a.txt"),
        ("list files and read a.txt", "list files, then read a.txt"),
        ("list\nread a.txt\nshow todo", "list, then read a.txt, then show todo"),
        ("列出文件，读取 a.txt", "列出文件，然后读取 a.txt"),
        ("read", "read FILE [lines 2-5]"),
        ("add a line to a.txt", "append TEXT to FILE"),
        ("make me a website", "create FILE with TEXT"),
        ("create a new folder src", "run mkdir src"),
        ("新建文件夹 src", "运行 mkdir src"),
        ("复制 a.txt 到 b.txt", "运行 cp a.txt b.txt"),
        ("重命名 a.txt 为 b.txt", "运行 mv a.txt b.txt"),
        ("run the tests", "run COMMAND"),
        ("exit", "/exit"),
        ("退出。", "/exit"),
    ],
)
def test_the_nearest_command_is_suggested(said: str, meant: str) -> None:
    assert suggest(said, chinese=False) == meant


def test_the_syntax_of_a_command_comes_in_the_language_of_the_user() -> None:
    assert suggest("替换 a.txt", chinese=True) == "把 文件 中的 A 替换为 B"


@pytest.mark.parametrize(
    "said", ["", "hello", "你好", "what time is it", "how do I do this", "read " + "x" * 200, "read\nme now"]
)
def test_nothing_is_suggested_where_nothing_is_near(said: str) -> None:
    assert suggest(said, chinese=False) == ""


@given(
    st.one_of(
        st.text(), st.lists(st.sampled_from(["read", "a b", ".txt", "git", "把", "'", '"', " "])).map("".join)
    )
)
@settings(max_examples=200, deadline=None)
def test_no_text_crashes_the_suggestions(said: str) -> None:
    assert isinstance(suggest(said, chinese=True), str)
