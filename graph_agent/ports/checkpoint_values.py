"""What a decoded checkpoint says, whichever program stored it: which nodes run next, and what is a message."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from xxhash import xxh3_128_hexdigest

__all__ = [
    "PlannedTask",
    "are_messages",
    "is_message",
    "planned_nodes",
    "planned_tasks",
    "role_of",
]

_BRANCH = "branch:to:"
_JOIN = "join:"
_START = "__start__"
_TASKS = "__pregel_tasks"
_PUSH, _PULL = "__pregel_push", "__pregel_pull"


class PlannedTask(NamedTuple):
    """A task that a checkpoint leads to."""

    path: str
    """Which run of the node it is, as writes name it."""
    node: str
    given: Any
    """What a task that was sent a packet is given, or takes in as input; None of one that an edge has triggered."""
    marks: tuple[str, ...]
    """The parts of its id that distinguish it from the checkpoint's other tasks."""

    def id_at(self, checkpoint_id: str, step: int) -> str:
        """The id that LangGraph gives it in a root graph; writes of old files name a task by it alone.

        Empty where the checkpoint's id is not one of LangGraph's.
        """
        try:
            place = UUID(checkpoint_id).bytes
        except ValueError:
            return ""
        text = "".join((self.node, str(step), self.node, *self.marks))
        return str(UUID(xxh3_128_hexdigest(place + text.encode())))


def planned_nodes(checkpoint: Mapping[str, Any]) -> tuple[str, ...]:
    """The nodes that a decoded checkpoint leads to, each once, without the one that takes in a message."""
    names = (task.node for task in planned_tasks(checkpoint) if not task.node.startswith("__"))
    return tuple(dict.fromkeys(names))


def planned_tasks(checkpoint: Mapping[str, Any]) -> list[PlannedTask]:
    """The tasks that a decoded checkpoint leads to: first each packet that was sent, then the triggered nodes."""
    values, versions = checkpoint.get("channel_values") or {}, checkpoint.get("channel_versions") or {}
    seen = checkpoint.get("versions_seen") or {}
    sent = [
        PlannedTask(f"~{_PUSH}, {number:010d}", *_sent_to(packet), (_PUSH, str(number)))
        for number, packet in enumerate(values.get(_TASKS) or [])
    ]
    pulled = [
        PlannedTask(
            f"~{_PULL}, {node}",
            node,
            values.get(_START) if node == _START else None,
            (_PULL, *_triggers_of(node, versions)),
        )
        for node, channels in sorted(_triggered(values).items())
        if any(versions.get(channel) != (seen.get(node) or {}).get(channel) for channel in channels)
    ]
    return sent + pulled


def _triggered(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The channels that trigger a node, by its name."""
    channels: dict[str, list[str]] = {}
    for name, value in values.items():
        if name.startswith((_BRANCH, _START)):
            channels.setdefault(name.removeprefix(_BRANCH), []).append(name)
        elif name.startswith(_JOIN) and _is_complete(name, value):
            channels.setdefault(name.rpartition(":")[2], []).append(name)
    return channels


def _triggers_of(node: str, versions: Mapping[str, Any]) -> list[str]:
    """Every channel that can trigger a node, in the order in which its id takes them in."""
    joins = [name for name in versions if name.startswith(_JOIN) and name.rpartition(":")[2] == node]
    return [node] if node == _START else sorted([f"{_BRANCH}{node}", *joins])


def _is_complete(name: str, value: Any) -> bool:
    """Whether a channel that waits for several nodes, `join:one+other:target`, has a value of each."""
    awaited = name.rpartition(":")[0].removeprefix(_JOIN)
    heard = value.get("value") if isinstance(value, dict) else None
    return isinstance(heard, list) and len("+".join(map(str, heard))) == len(awaited)


def _sent_to(packet: Any) -> tuple[str, Any]:
    if hasattr(packet, "node"):
        return str(packet.node), packet.arg
    arguments = packet.get("value") if isinstance(packet, dict) else None
    return (
        (str(arguments[0]), arguments[1]) if isinstance(arguments, list) and len(arguments) > 1 else ("?", packet)
    )


_TYPES = frozenset(("human", "ai", "tool", "system", "function", "chat", "developer", "remove"))
_ROLES = frozenset(("user", "assistant", "tool", "system", "function", "developer"))


def is_message(value: Any) -> bool:
    """Whether it is a message: of LangChain, or one that says its role."""
    if not isinstance(value, dict) or "content" not in value:
        return False
    kind = str(value.get("type")).removesuffix("MessageChunk").lower()
    return kind in _TYPES or value.get("role") in _ROLES


def are_messages(value: Any) -> bool:
    """Whether it is a conversation."""
    return isinstance(value, list) and bool(value) and all(map(is_message, value))


def role_of(message: dict[str, Any]) -> str:
    """Who says it, in the words of the model's protocol."""
    kind = str(message.get("type") or message.get("role")).removesuffix("MessageChunk").lower()
    return {"human": "user", "ai": "assistant"}.get(kind, kind)
