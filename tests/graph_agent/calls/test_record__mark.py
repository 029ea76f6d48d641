from graph_agent.calls import process_marker


def test_every_life_call_and_attempt_has_a_mark_of_its_own_and_always_the_same() -> None:
    marks = [
        process_marker(*key)
        for key in (("life", "c1", 1), ("other", "c1", 1), ("life", "c2", 1), ("life", "c1", 2))
    ]

    assert (len(set(marks)), process_marker("life", "c1", 1)) == (4, marks[0])


def test_an_id_that_is_no_text_has_a_mark_as_well() -> None:
    assert process_marker("life", "c\udcff", 1).isalnum()
