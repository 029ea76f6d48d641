from graph_agent.ports import Walls, no_walls


def test_the_label_says_what_stands_or_that_nothing_does() -> None:
    labels = [Walls(name, "").label for name in ("bubblewrap", "Landlock", "none", "off")]

    assert labels == ["sandbox bubblewrap", "sandbox Landlock", "no sandbox", "sandbox off"]


def test_a_session_without_a_sandbox_asks_nothing_about_one() -> None:
    assert (no_walls().stands, no_walls().tools) == (False, ())
