from tests.cases.bench import SetUp
from tests.fakes.openai_server import TXT


def test_a_prompt_may_be_a_command_of_ones_own_and_one_of_an_untrusted_project_is_refused(set_up: SetUp) -> None:
    bench = set_up(TXT("one"), TXT("two"))
    for folder, text in (
        (bench.home / "commands", "Mine: $ARGUMENTS"),
        (bench.workspace / ".graph-agent/commands", "Theirs"),
    ):
        folder.mkdir(parents=True)
        (folder / f"{text.split(':')[0].lower()}.md").write_text(text)

    mine = bench.ask("/mine a b")
    untrusted = bench.ask("/theirs")
    trusted = bench.ask("/theirs", "--trust")

    sent = [body["messages"][-1]["content"] for body in bench.server.bodies]
    assert (mine.ending, untrusted.code, trusted.ending) == ((0, "one"), 2, (0, "two"))
    assert sent == ["Mine: a b", "Theirs"]
    assert "graph-agent config trust" in untrusted.err
