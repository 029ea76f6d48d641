from graph_agent.ports.storage import FileStates


async def test_the_last_state_of_a_file_is_known_per_thread(file_states: FileStates) -> None:
    await file_states.set("t", "/w/a", "old")
    await file_states.set("t", "/w/a", "new")
    await file_states.set("t", "/w/\udcff", "odd name")

    found = [
        await file_states.get(*key) for key in [("t", "/w/a"), ("t", "/w/\udcff"), ("t", "/w/b"), ("u", "/w/a")]
    ]

    assert found == ["new", "odd name", None, None]
