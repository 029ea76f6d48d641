from graph_agent.ports.model import Window, assumed_window


def test_a_reply_has_the_reserve_but_never_more_than_a_quarter() -> None:
    assert (Window(100_000, reserve=8_000).ceiling, Window(4_000, reserve=8_000).ceiling) == (92_000, 3_000)


async def test_without_anybody_to_ask_a_common_window_is_assumed() -> None:
    assert await assumed_window(1) == Window(128_000, "assumed", 8_192, 80, summarises=True)
