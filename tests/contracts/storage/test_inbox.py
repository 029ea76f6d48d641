from graph_agent.ports.storage import Inbox


async def test_messages_wait_in_order_until_each_is_taken(inbox: Inbox) -> None:
    for text in ("one", "two", "three\ud800"):
        await inbox.queue("t", text, "chat")
    await inbox.queue("other", "not yours", "chat")
    waiting = await inbox.waiting("t")

    await inbox.take("t", waiting[1][0])
    await inbox.take("other", waiting[0][0])

    assert [text for _, text in waiting] == ["one", "two", "three?"]
    assert await inbox.waiting("t") == [waiting[0], waiting[2]]


async def test_a_message_is_taken_back_once_and_only_while_it_waits(inbox: Inbox) -> None:
    numbers = [await inbox.queue("t", text, "chat") for text in ("one", "two", "three")]
    await inbox.take("t", numbers[0])

    back = [await inbox.remove("t", number) for number in (*numbers[:2], numbers[1])]
    foreign = await inbox.remove("other", numbers[2])

    assert (back, foreign, await inbox.waiting("t")) == ([False, True, False], False, [(numbers[2], "three")])
