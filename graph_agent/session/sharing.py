"""What a state tells of its use, for a budget that a thread shares with its sub-agents. Reads values only."""

from collections.abc import Collection, Mapping
from typing import Any

from graph_agent.calls import FINAL
from graph_agent.graph.usage import spent_by, spent_of_turn
from graph_agent.ports.purse import Purse, Used
from graph_agent.ports.spending import summed
from graph_agent.session.open_calls import asked_last

__all__ = ["begin", "used_in", "used_with_those_below"]


def used_in(values: Mapping[str, Any]) -> Used:
    """What turn and thread used, calls among it that have ended and that the model has not been told of."""
    turn = (values.get("turn") or {}).get("usage")
    ended = [call for call in _newest(values).values() if call["status"] in FINAL]
    return Used(summed(turn, spent_of_turn(ended, {})), summed(values.get("usage"), spent_by(ended, {})))


def begin(purse: Purse, thread_id: str, values: Mapping[str, Any], afresh: str) -> None:
    """Let the purse of a thread know where its turn stands; `afresh` as in `Life`."""
    turn = values.get("turn") or {}
    ended = [call for call in _newest(values).values() if call["status"] in FINAL]
    below = int(turn.get("below", 0)) + int(spent_of_turn(ended, {}).get("requests", 0))
    still_open = _still_open(values)
    used = used_in(values)
    if afresh not in ("", turn.get("afresh")):
        purse.begin(thread_id, Used({}, used.thread), 0, still_open)
    else:
        purse.begin(thread_id, used, int(turn.get("steps", 0)) + below, still_open)


def used_with_those_below(purse: Purse, thread_id: str, values: Mapping[str, Any]) -> Used:
    """The same with what sub-agents whose calls are still open have used."""
    purse.forget_told(thread_id, _still_open(values))
    own, below = used_in(values), purse.below()
    return Used(summed(own.turn, below.turn), summed(own.thread, below.thread))


def _still_open(values: Mapping[str, Any]) -> Collection[str]:
    return {call_id for call_id, call in _newest(values).items() if call["status"] not in FINAL}


def _newest(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The calls whose results the model has not been told yet."""
    asked = set(asked_last(values))
    return {call_id: call for call_id, call in (values.get("calls") or {}).items() if call_id in asked}
