import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.offline.replies import suggest


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
