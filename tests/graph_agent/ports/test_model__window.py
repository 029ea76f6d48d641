from graph_agent.ports.model import ContextWindow, assumed_context_window


def test_a_reply_has_the_reserve_but_never_more_than_a_quarter() -> None:
    assert (ContextWindow(100_000, reserve=8_000).ceiling, ContextWindow(4_000, reserve=8_000).ceiling) == (
        92_000,
        3_000,
    )


async def test_without_anybody_to_ask_a_common_window_is_assumed() -> None:
    assert await assumed_context_window(1) == ContextWindow(128_000, "assumed", 8_192, 80, can_summarize=True)
