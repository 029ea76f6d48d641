from graph_agent.ports import Outcome, Scope
from graph_agent.ports.toolbox import NO_HOOKS
from tests.fakes.toolbox_world import call_of


async def test_where_nothing_is_wanted_nothing_objects_and_nothing_is_said() -> None:
    call = call_of("bash", {})
    scope = Scope("t", "default")

    await NO_HOOKS.turn_ended("t", "done", "")

    assert (await NO_HOOKS.before(call, scope), await NO_HOOKS.after(call, Outcome("success", "ok"), scope)) == (
        "",
        "",
    )
    assert (
        NO_HOOKS.has_message_hooks,
        await NO_HOOKS.session_started("t", "startup", "default"),
        await NO_HOOKS.message_submitted("t", "hi", "default"),
    ) == (False, "", "")
