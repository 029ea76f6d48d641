from graph_agent.store.database import Database
from graph_agent.store.inbox import SqliteInbox
from tests.fakes.stepping_clock import SteppingClock


async def test_messages_wait_in_order_until_each_is_taken(database: Database, clock: SteppingClock) -> None:
    inbox = SqliteInbox(database, clock)
    for text in ("one", "two", "three\ud800"):
        await inbox.queue("t", text, "chat")
    await inbox.queue("other", "not yours", "chat")
    waiting = await inbox.waiting("t")

    await inbox.take("t", waiting[1][0])
    await inbox.take("other", waiting[0][0])

    assert [text for _, text in waiting] == ["one", "two", "three?"]
    assert await inbox.waiting("t") == [waiting[0], waiting[2]]
