from graph_agent.cli.chat.conversation import ServerStates
from graph_agent.events import EventBus, ServerChanged, WarningIssued


def test_the_newest_of_each_server_is_kept_and_a_new_session_begins_with_none() -> None:
    seen = ServerStates()
    bus = seen.on(EventBus())
    for event in (ServerChanged("a", "starting"), WarningIssued("x"), ServerChanged("a", "running", 2)):
        bus.publish(event)
    before = dict(seen.now)
    seen.on(EventBus())

    assert (before, seen.now) == ({"a": ServerChanged("a", "running", 2)}, {})
