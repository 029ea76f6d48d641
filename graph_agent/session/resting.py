"""How a turn came to rest, read from the state it left. Reads values only."""

from collections.abc import Mapping
from typing import Any

from graph_agent.session.api import Rest, RestStatus
from graph_agent.session.run import last_answer, last_unmet

__all__ = ["outcome_of", "rest_of"]


def outcome_of(values: Mapping[str, Any]) -> RestStatus:
    """How the turn ended that a thread at rest ended with."""
    match (values.get("turn") or {}).get("outcome"):
        case "limit":
            return "limit"
        case "stopped":
            return "stopped"
    return "done"


def rest_of(status: RestStatus, thread_id: str, checkpoint_id: str, values: Mapping[str, Any]) -> Rest:
    """The rest with what the state tells of it, but for what was used."""
    turn = values.get("turn") or {}
    at_limit = turn if status == "limit" else {}
    why = at_limit.get("why")
    return Rest(
        status=status,
        thread_id=thread_id,
        checkpoint_id=checkpoint_id,
        answer=last_answer(values),
        unmet=last_unmet(values) if status == "done" else "",
        error=f"the turn was paused at a limit: {why}" if why else None,
        budget=str(at_limit.get("budget") or ""),
        is_shared=bool(at_limit.get("shared")),
    )
