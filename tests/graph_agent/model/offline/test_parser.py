from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.offline.parser import MAX_LENGTH, Command, NotUnderstood, is_chinese, parse

MESSAGES: list[tuple[str, Command]] = [
    ("list", Command("list", ".")),
    ("List the files.", Command("list", ".")),
    ("please show me all the files", Command("list", ".")),
    ("list files in this folder", Command("list", ".")),
    ("ls src/lib", Command("list", "src/lib")),
    ("list the files in src", Command("list", "src")),
    ("列出文件", Command("list", ".")),
    ("请列出当前目录下的所有文件", Command("list", ".")),
    ("列出 src", Command("list", "src")),
    ("列出src目录下的文件", Command("list", "src")),
    ("read a.txt", Command("read", "a.txt")),
    ("can you read a.txt?", Command("read", "a.txt")),
    ("show me the file a.txt.", Command("read", "a.txt")),
    ('show "my file.txt"', Command("read", "my file.txt")),
    ("show a.txt lines 2-4", Command("read", "a.txt", first=2, last=4)),
    ("read a.txt, lines 2 to 4", Command("read", "a.txt", first=2, last=4)),
    ("show a.txt line 3", Command("read", "a.txt", first=3, last=3)),
    ("读取 a.txt", Command("read", "a.txt")),
    ("读取a.txt第2到5行", Command("read", "a.txt", first=2, last=5)),
    ("查看 a.txt 的内容", Command("read", "a.txt")),
    ("find files *.py", Command("find", ".", "*.py")),
    ("find all files named setup.py", Command("find", ".", "setup.py")),
    ("查找文件 *.py", Command("find", ".", "*.py")),
    ("search TODO", Command("search", ".", "TODO")),
    ("search for two words in src", Command("search", "src", "two words")),
    ('grep "a in b" in src', Command("search", "src", "a in b")),
    ("搜索 待办 在 src", Command("search", "src", "待办")),
    ("在 src 中搜索 TODO", Command("search", "src", "TODO")),
    ("create a.txt with hello world", Command("create", "a.txt", "hello world\n")),
    ("create hello.txt saying hi!", Command("create", "hello.txt", "hi!\n")),
    ("write a file called x.md containing # hi\nthere", Command("create", "x.md", "# hi\nthere\n")),
    ("create x.py with the content: print(1)", Command("create", "x.py", "print(1)\n")),
    ("write hello to a.txt", Command("create", "a.txt", "hello\n")),
    ('create a.txt with "one\\ntwo"', Command("create", "a.txt", "one\ntwo\n")),
    ("create empty.txt", Command("create", "empty.txt", "")),
    ("创建hello.txt内容为你好", Command("create", "hello.txt", "你好\n")),
    ("写入 a.txt 内容为：x", Command("create", "a.txt", "x\n")),
    ("append hi to a.txt", Command("append", "a.txt", "hi")),
    ("append to a.txt: hi", Command("append", "a.txt", "hi")),
    ("追加 hi 到 a.txt", Command("append", "a.txt", "hi")),
    ("向 a.txt 追加 hi", Command("append", "a.txt", "hi")),
    ("replace foo by bar in a.txt", Command("replace", "a.txt", "foo", "bar")),
    ("replace 'a b' with 'c d' in a.txt", Command("replace", "a.txt", "a b", "c d")),
    ("把 a.txt 中的 foo 替换为 bar", Command("replace", "a.txt", "foo", "bar")),
    ("在 a.txt 中把 foo 替换成 bar", Command("replace", "a.txt", "foo", "bar")),
    ("run ls -la | wc -l", Command("run", text="ls -la | wc -l")),
    ("run `echo 'a then b'`", Command("run", text="echo 'a then b'")),
    ("run the command: make test", Command("run", text="make test")),
    ('run "my prog" "x"', Command("run", text='"my prog" "x"')),
    ("run 'echo a and b'", Command("run", text="echo a and b")),
    ("run git commit -m 'fix and test'", Command("run", text="git commit -m 'fix and test'")),
    ('run echo "b and c" x', Command("run", text='echo "b and c" x')),
    ("run if true; then echo a; fi", Command("run", text="if true; then echo a; fi")),
    ("run while true; do date; done", Command("run", text="while true; do date; done")),
    ("run find . -name a -and -name b", Command("run", text="find . -name a -and -name b")),
    ("run make && echo ok || echo no", Command("run", text="make && echo ok || echo no")),
    ("run ls file?", Command("run", text="ls file?")),
    ("run echo a, b", Command("run", text="echo a, b")),
    ("run echo thanks", Command("run", text="echo thanks")),
    ("please run make, thanks", Command("run", text="make")),
    ("运行 echo '告诉我'", Command("run", text="echo '告诉我'")),
    ("运行 ls -la", Command("run", text="ls -la")),
    ("执行命令：make", Command("run", text="make")),
    ("remember that I like tabs", Command("remember", text="I like tabs")),
    ("记住 我喜欢制表符", Command("remember", text="我喜欢制表符")),
    ("read a.txt lines 2-4 please", Command("read", "a.txt", first=2, last=4)),
    ("show lines ２ to ４ of a.txt, thanks", Command("read", "a.txt", first=2, last=4)),
    ("read my\\ file.txt", Command("read", "my file.txt")),
    ("read ‘my file.txt’", Command("read", "my file.txt")),
    ("look at a.txt:3", Command("read", "a.txt", first=3, last=3)),
    ("请读取《我的 文件.txt》的第２到５行，谢谢", Command("read", "我的 文件.txt", first=2, last=5)),
    ("读取 a.txt 吧", Command("read", "a.txt")),
    ("find files *.py in my\\ dir", Command("find", "my dir", "*.py")),
    ("search foo in all files", Command("search", ".", "foo")),
    ("search in src for TODO", Command("search", "src", "TODO")),
    ("find it in /etc/hosts", Command("search", "/etc/hosts", "it")),
    ("create a.txt with the text hello", Command("create", "a.txt", "hello\n")),
    ("create a.txt with text editors", Command("create", "a.txt", "text editors\n")),
    ("create a.txt with hi, thanks", Command("create", "a.txt", "hi, thanks\n")),
    ("create a.py with:\n  if x:\n    y\n", Command("create", "a.py", "  if x:\n    y\n")),
    ("create a.py with\n```python\n  x = '\"'\n```", Command("create", "a.py", "  x = '\"'\n")),
    ("创建 a.txt 内容为 你好。", Command("create", "a.txt", "你好。\n")),
    ("add the line 'x' to the end of a.txt", Command("append", "a.txt", "x")),
    ("向a.txt追加一行：x", Command("append", "a.txt", "x")),
    ("replace all occurrences of foo with bar in a.txt", Command("replace", "a.txt", "foo", "bar")),
    ("replace all with none in a.txt", Command("replace", "a.txt", "all", "none")),
    ("replace x by '' in a.txt", Command("replace", "a.txt", "x", "")),
    ("把 a.txt 中的所有 foo 替换为 bar。", Command("replace", "a.txt", "foo", "bar")),
    ("用「b」替换 a.txt 中的「a」", Command("replace", "a.txt", "a", "b")),
    ("run command -v git", Command("run", text="command -v git")),
    ("run make please", Command("run", text="make please")),
    ('create a.txt with "hi", thanks', Command("create", "a.txt", "hi\n")),
    ("创建《笔记 一.txt》内容为“你好，世界”，谢谢", Command("create", "笔记 一.txt", "你好，世界\n")),
    ('create a.txt with he said "no", thanks', Command("create", "a.txt", 'he said "no", thanks\n')),
    ("运行 ls。", Command("run", text="ls")),
    ("remember: I like tabs", Command("remember", text="I like tabs")),
    ("显示待办列表", Command("todo")),
    ("show todo", Command("todo")),
    ("显示待办", Command("todo")),
    ("read a.txt lines 4-2", Command("read", "a.txt", first=2, last=4)),
    ("读取 a.txt 第２到十二行", Command("read", "a.txt", first=2, last=12)),
    ("read a.txt from line 3", Command("read", "a.txt", first=3)),
    ("show the first line of a.txt", Command("read", "a.txt", first=1, last=1)),
    ("运行 “echo 。”", Command("run", text="echo 。")),
    ("把 a.txt 中的 a 替换为 b。", Command("replace", "a.txt", "a", "b")),
    ("append to a.txt:\n  one\n  two\n", Command("append", "a.txt", "  one\n  two")),
]


@pytest.mark.parametrize(("text", "command"), MESSAGES)
def test_each_message_means_its_command(text: str, command: Command) -> None:
    assert parse(text) == (command,)


@pytest.mark.parametrize(
    "text",
    [
        "list the files, then create hello.txt saying hi", "list the files then create hello.txt saying hi",
        "list files, and then please create hello.txt with hi", "列出文件，然后创建 hello.txt 内容为 hi",
        "列出文件 然后 create hello.txt with hi", "先列出文件，再创建 hello.txt 内容为 hi",
        "first list the files; after that create hello.txt with hi",
    ],
)  # fmt: skip
def test_commands_are_joined_by_then(text: str) -> None:
    assert parse(text) == (Command("list", "."), Command("create", "hello.txt", "hi\n"))


def test_then_inside_quotes_or_without_a_verb_after_it_belongs_to_the_text() -> None:
    quoted = parse('create a.txt with "first, then list" then list')
    unquoted = parse("create a.txt with now and then some")

    assert quoted == (Command("create", "a.txt", "first, then list\n"), Command("list", "."))
    assert unquoted == (Command("create", "a.txt", "now and then some\n"),)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "run the tests", "good morning", "早上好", "run", "create a directory", "how are you then",
        "then", "search for", "ls -la", "find files",
    ],
)  # fmt: skip
def test_other_text_is_not_understood(text: str) -> None:
    assert parse(text) == NotUnderstood(text.strip())


@pytest.mark.parametrize(
    "text",
    [
        "run sh run.sh and tell me the total",
        "run sh run.sh to get the total",
        "run sh run.sh. Then tell me",
        "run sh run.sh, show me the output",
        "run sh run.sh; what is the total?",
        "run `sh run.sh` and tell me",
        "run ls, then explain it",
        "run ls then explain it",
        "run echo hi and echo bye",
        'run echo "a" and "b"',
        "run pytest with the new settings",
        "run make until it passes",
        "run make twice",
        "运行 sh run.sh 并告诉我总数",
        "运行 sh run.sh，然后解释",
    ],
)
def test_a_sentence_that_goes_on_after_a_command_is_not_run(text: str) -> None:
    assert parse(text) == NotUnderstood(text)


def test_one_part_that_is_not_understood_rejects_the_whole_message() -> None:
    assert parse("list, then create a directory") == NotUnderstood("create a directory")


@pytest.mark.parametrize(
    "text",
    [
        "help", "Help!", "?", "帮助", "what can you do?", "hello", "你好", "how do I connect a model?",
        "如何连接模型",
    ],
)  # fmt: skip
def test_a_question_about_the_commands_asks_for_help(text: str) -> None:
    assert parse(text) == NotUnderstood(text, asks_for_help=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list", False),
        ("create 你好.txt with 你好", False),
        ("读取 a.txt", True),
        ("list 然后 读取 a.txt", False),
        ("你好", True),
        ("", False),
        ("好" * MAX_LENGTH + "了", True),
    ],
)
def test_the_language_is_that_of_the_first_command_not_of_the_names_in_it(text: str, expected: bool) -> None:
    assert is_chinese(text) is expected


def test_a_very_long_message_is_refused_as_such() -> None:
    assert parse("create a.txt with " + "x" * MAX_LENGTH) == NotUnderstood(
        "create a.txt with " + "x" * 62, is_too_long=True
    )


_PIECES = [
    *[
        "list", "read", "find", "search", "create", "append", "replace", "run", "remember", "then", "with", "in",
        "by", "to", "all", "a.txt", '"', "'", "`", "```", "\\", ":", ",", "。",
    ],
    *[
        "列出", "读取", "查找", "搜索", "创建", "追加", "把", "中的", "替换为", "运行", "记住", "然后", "内容为",
        "“", "”", "第二行",
    ],
    *("show todo", "lines 2-4", "my file", " ", "\n"),
]  # fmt: skip
_WORDS = st.sampled_from(_PIECES)


@given(st.one_of(st.text(), st.lists(_WORDS, max_size=40).map(" ".join)))
@settings(max_examples=300, deadline=None)
def test_no_text_crashes_the_parser(text: str) -> None:
    assert isinstance(parse(text), tuple | NotUnderstood)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece", [" ", "replace a by b in ", "append a to ", "x then ", '"', "在 a 中 把 ", "then list "]
)
@pytest.mark.timeout(60)
def test_repetitive_text_of_full_length_is_parsed_in_time(piece: str) -> None:
    text = ("replace " + piece * MAX_LENGTH)[: MAX_LENGTH - 1] + "("

    assert isinstance(parse(text), tuple | NotUnderstood)


@pytest.mark.slow
@given(
    st.one_of(st.text(), st.lists(_WORDS, max_size=12).map(" ".join), st.lists(_WORDS, max_size=12).map("".join))
)
@settings(max_examples=400, deadline=None)
def test_a_command_contains_no_word_that_the_message_does_not(text: str) -> None:
    commands = parse(text)

    if isinstance(commands, tuple):
        told = text.replace("\\", "").replace("\n", "")
        named = [value for command in commands for value in astuple(command)[1:] if isinstance(value, str)]
        bare = [value.replace("\\", "").replace("\n", "").replace("\t", "t") for value in named]
        assert [value for value in bare if value != "." and value not in told] == []
