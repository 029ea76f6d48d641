from pathlib import Path

import pytest

from graph_agent.app.opening import open_session
from graph_agent.model.offline.parser import CHINESE, ENGLISH, Phrase
from tests.scenarios.command import NO_SANDBOX, Command

_BAD_NEWS = ("Not done", "Nothing changed", "Not understood", "未完成", "没有改动", "未能理解")


def lay_down(workspace: Path) -> None:
    """The files that the documented examples speak of."""
    (workspace / "src").mkdir(parents=True, exist_ok=True)
    for name, text in {
        "prices.py": "one\ntwo\nthree\nfour\nfive\n",
        "a.txt": "foo\n",
        "Makefile": "test:\n\t@echo tested\n",
        "src/prices.py": "total = 合计\n",
    }.items():
        (workspace / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("phrases", [ENGLISH, CHINESE], ids=["english", "chinese"])
async def test_every_documented_phrase_works_with_the_real_tools(
    phrases: tuple[Phrase, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(NO_SANDBOX)
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(home))
    workspace = tmp_path / "workspace"
    lay_down(workspace)
    failed: dict[str, str] = {}
    session = await open_session(workspace=workspace, thread_id="t", flags={"mode": "bypassPermissions"})

    for example in (example for phrase in phrases for example in phrase.examples):
        lay_down(workspace)
        rest = await session.send(example)
        if rest.status != "done" or any(word in rest.answer for word in _BAD_NEWS):
            failed[example] = rest.answer

    await session.close()
    assert failed == {}


def test_an_english_chain_does_its_work_and_tells_it_in_english(tmp_path: Path) -> None:
    command = Command(tmp_path, settings=NO_SANDBOX)
    prompt = (
        'please create "my notes/to do.txt" with "one\\ntwo", then append it\'s three to "my notes/to do.txt", '
        "then replace every two by “2 2” in 'my notes/to do.txt', then run 'false', then list"
    )

    done = command("run", "--mode", "bypassPermissions", prompt)

    assert (command.workspace / "my notes/to do.txt").read_text() == "one\n2 2\nit's three\n"
    assert done.stdout.startswith("(offline mode, no model: ")
    assert done.stdout.endswith("Error: The command failed: exit code 1.\n\nThe 1 command after it did not run.\n")
    assert (done.returncode, done.stderr.splitlines()[-3]) == (1, "graph-agent: not done: false")


def test_a_message_that_is_not_understood_is_answered_with_what_would_be(tmp_path: Path) -> None:
    command = Command(tmp_path, settings=NO_SANDBOX)

    answered, told = command.run_json("make me a website")
    refused, _ = command.run_json("run false", "--thread", "t")

    assert (answered, told["status"], told["error"]) == (1, "failed", "not understood")
    assert "Not understood" in told["answer"]
    assert command("run", "help").returncode == 0
    assert (refused, command("run", "--resume", "t", "--reject", "all").returncode) == (3, 0)


def test_a_chinese_chain_does_its_work_and_tells_it_in_chinese(tmp_path: Path) -> None:
    command = Command(tmp_path, settings=NO_SANDBOX)
    prompt = (
        "请创建《我的 笔记.txt》，内容为：\n一\n二\n\n然后向「我的 笔记.txt」追加“三，然后列出”，"
        "接着把“我的 笔记.txt”中的所有二替换为“２ 2”。再读取“我的 笔记.txt”的第２到三行，谢谢"
    )

    done = command("run", "--mode", "bypassPermissions", prompt)

    assert (command.workspace / "我的 笔记.txt").read_text(encoding="utf-8") == "一\n２ 2\n三，然后列出\n"
    assert done.stdout.startswith("（offline mode, no model：")
    assert "我的 笔记.txt：\n     2\t２ 2\n     3\t三，然后列出\n" in done.stdout
