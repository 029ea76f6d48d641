from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.threads import SqliteInbox
from tests.fakes.stepping_clock import SteppingClock


async def test_a_message_whose_turn_has_begun_waits_no_more_though_nobody_could_mark_it(
    database: Database, clock: SteppingClock
) -> None:
    inbox = SqliteInbox(database, clock)
    await inbox.queue("t", "one", "chat")
    [(number, _)] = await inbox.waiting("t")
    row = ("t", 1, f"inbox-{number}", "user", "{}", "c1", clock.now())
    statement = (
        "INSERT INTO transcript (thread_id, seq, message_id, role, body, checkpoint_id, at) VALUES (?,?,?,?,?,?,?)"
    )

    await database.write(lambda connection: connection.execute(statement, row))

    assert await inbox.waiting("t") == []


async def test_a_message_that_waits_goes_over_to_another_thread_once_though_that_one_took_one_of_its_number(
    database: Database, clock: SteppingClock
) -> None:
    inbox = SqliteInbox(database, clock)
    numbers = [await inbox.queue("t", text, "chat") for text in ("one", "two")]
    await inbox.take("t", numbers[0])
    row = ("other", 1, f"inbox-{numbers[1]}", "user", "{}", "c1", clock.now())
    statement = (
        "INSERT INTO transcript (thread_id, seq, message_id, role, body, checkpoint_id, at) VALUES (?,?,?,?,?,?,?)"
    )
    await database.write(lambda connection: connection.execute(statement, row))

    there = [await inbox.move_to_thread("t", number, "other") for number in (*numbers, numbers[1])]

    assert there == [None, numbers[1] + 1, None]
    assert (await inbox.waiting("t"), await inbox.waiting("other")) == ([], [(numbers[1] + 1, "two")])
