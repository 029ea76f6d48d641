from graph_agent.ports.background import NoShells


async def test_where_there_are_no_shells_none_ever_ended() -> None:
    shells = NoShells()

    await shells.reattach("t1")

    assert await shells.ended("t1") == {}
