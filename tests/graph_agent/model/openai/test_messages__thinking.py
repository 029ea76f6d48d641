import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.model.openai.messages import ThinkingFilter, without_thinking


def told_apart(pieces: list[str]) -> tuple[str, str]:
    sorter = ThinkingFilter()
    told = [piece for text in pieces for piece in sorter.feed(text)] + sorter.flush()
    return tuple("".join(text for kind, text in told if kind == wanted) for wanted in ("reasoning", "text"))  # type: ignore[return-value] # two kinds, two texts


@pytest.mark.parametrize(
    ("whole", "reasoning", "text"),
    [
        ("hello", "", "hello"),
        ("<think>plan</think>\n\nhello", "plan", "hello"),
        ("\n<think>plan</think>", "plan", ""),
        ("<think>never closed", "never closed", ""),
        ("<thinker> hello", "", "<thinker> hello"),
        ("say <think>x</think>", "", "say <think>x</think>"),
        ("<think>a < b </thin k></think>c", "a < b </thin k>", "c"),
        ("<", "", "<"),
        ("<thinking>plan</think></thinking>hello", "plan</think>", "hello"),
        ("<thought>plan</thought>hello", "plan", "hello"),
        ("[THINK]plan[/THINK]hello", "plan", "hello"),
        ("[THIN", "", "[THIN"),
        ("<think>a</think>\n<think>b</think> hello", "ab", "hello"),
        ("<think></think>\n <thi", "", "<thi"),
        ("<seed:think>plan</seed:think>hello", "plan", "hello"),
        ("◁think▷plan◁/think▷hello", "plan", "hello"),
    ],
)
def test_thinking_at_the_beginning_is_told_from_the_text_however_it_is_cut(
    whole: str, reasoning: str, text: str
) -> None:
    assert told_apart([whole]) == (reasoning, text)
    assert told_apart(list(whole)) == (reasoning, text)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<", "/", "think", ">", "a", " ", "\n"]), max_size=12))
def test_cutting_the_text_differently_changes_nothing(pieces: list[str]) -> None:
    assert told_apart(pieces) == told_apart(["".join(pieces)])


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("plan\n</think>\n\nhello", "hello"),
        ("</think>\nhello", "hello"),
        ("the tag `</think>` ends it", "the tag `</think>` ends it"),
        ("a\n</think>\nb\n</think>\nc", "a\n</think>\nb\n</think>\nc"),
        ("write <think>\nx\n</think>\n", "write <think>\nx\n</think>\n"),
    ],
)
def test_of_thinking_whose_beginning_was_never_sent_only_what_follows_its_end_is_the_text(
    text: str, rest: str
) -> None:
    assert without_thinking(text) == rest
