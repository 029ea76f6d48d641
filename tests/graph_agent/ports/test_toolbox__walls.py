from graph_agent.ports import SandboxInfo, no_sandbox_info


def test_the_label_says_what_stands_or_that_nothing_does() -> None:
    labels = [SandboxInfo(name, "").label for name in ("bubblewrap", "Landlock", "none", "off")]

    assert labels == ["sandbox bubblewrap", "sandbox Landlock", "no sandbox", "sandbox off"]


def test_a_session_without_a_sandbox_asks_nothing_about_one() -> None:
    assert (no_sandbox_info().is_active, no_sandbox_info().tools) == (False, ())
