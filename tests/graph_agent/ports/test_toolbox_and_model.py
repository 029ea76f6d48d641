from graph_agent.ports import ModelRequest, Outcome, SandboxInfo, Scope, no_sandbox_info
from graph_agent.ports.background import NoShells
from graph_agent.ports.model import ContextWindow, assumed_context_window
from graph_agent.ports.toolbox import NO_HOOKS, NO_MENTION_EXPANSION, ExpandedMessage
from tests.fakes.toolbox_world import call_of

SCOPE = Scope("t", "default")


async def test_by_default_no_hook_objects_no_mention_is_read_and_no_shell_ended() -> None:
    call = call_of("bash", {})

    await NO_HOOKS.turn_ended("t", "done", "")
    await NoShells().reattach("t")

    assert not NO_HOOKS.has_message_hooks
    assert [
        await NO_HOOKS.session_started("t", "startup", "default"),
        await NO_HOOKS.message_submitted("t", "hi", "default"),
        await NO_HOOKS.before(call, SCOPE),
        await NO_HOOKS.after(call, Outcome("success", "ok"), SCOPE),
    ] == [""] * 4
    assert await NO_MENTION_EXPANSION.expand("@src/a.py", SCOPE) == ExpandedMessage("@src/a.py")
    assert await NoShells().ended("t") == {}


def test_the_label_of_a_sandbox_says_which_it_is_or_that_there_is_none() -> None:
    labels = [SandboxInfo(name, "").label for name in ("bubblewrap", "Landlock", "none", "off")]

    assert labels == ["sandbox bubblewrap", "sandbox Landlock", "no sandbox", "sandbox off"]
    assert (no_sandbox_info().is_active, no_sandbox_info().tools) == (False, ())


def test_a_request_knows_the_names_of_its_tools() -> None:
    declared = [{"type": "function", "function": {"name": name}} for name in ("ls", "bash")]

    assert ModelRequest([], declared).tool_names == {"ls", "bash"}


async def test_the_window_of_an_unknown_model_is_assumed() -> None:
    assert await assumed_context_window(1) == ContextWindow(128_000, "assumed", 8_192, 80, can_summarize=True)
