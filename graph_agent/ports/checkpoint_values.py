"""Reads decoded checkpoints, whichever program stored them: which nodes run next, and what is a message."""

from collections.abc import Mapping
from typing import Any, NamedTuple

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
    """The content of the packet that was sent to it, or the input; None of one that an edge has triggered."""
    marks: tuple[str, ...]
    """The parts of its id that distinguish it from the checkpoint's other tasks."""

    def id_at(self, checkpoint_id: str, step: int) -> str:
        """The id that LangGraph gives it in a root graph; writes of old files name a task by it alone.

        Empty where the checkpoint's id is not one of LangGraph's.
        """
        from uuid import UUID  # noqa: PLC0415 - commands that only read do without

        from xxhash import xxh3_128_hexdigest  # noqa: PLC0415 - likewise

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
    tasks = []
    packets = values.get(_TASKS)
    for number, packet in enumerate(packets if isinstance(packets, list | tuple) else ()):
        node, given = _packet_content(packet)
        tasks.append(PlannedTask(f"~{_PUSH}, {number:010d}", node, given, (_PUSH, str(number))))
    channels_by_node: dict[str, list[str]] = {}
    for name, value in values.items():
        if name.startswith((_BRANCH, _START)):
            channels_by_node.setdefault(name.removeprefix(_BRANCH), []).append(name)
        elif name.startswith(_JOIN) and _is_complete(name, value):
            channels_by_node.setdefault(name.rpartition(":")[2], []).append(name)
    for node, channels in sorted(channels_by_node.items()):
        if all(versions.get(channel) == (seen.get(node) or {}).get(channel) for channel in channels):
            continue
        # Every channel that can trigger the node, in the order in which its id takes them in.
        joins = [name for name in versions if name.startswith(_JOIN) and name.rpartition(":")[2] == node]
        triggers = [node] if node == _START else sorted([f"{_BRANCH}{node}", *joins])
        given = values.get(_START) if node == _START else None
        tasks.append(PlannedTask(f"~{_PULL}, {node}", node, given, (_PULL, *triggers)))
    return tasks


def _is_complete(name: str, value: Any) -> bool:
    """Whether a channel that waits for several nodes, `join:one+other:target`, has a value of each."""
    awaited = name.rpartition(":")[0].removeprefix(_JOIN)
    finished = value.get("value") if isinstance(value, dict) else None
    return isinstance(finished, list) and len("+".join(map(str, finished))) == len(awaited)


def _packet_content(packet: Any) -> tuple[str, Any]:
    """The node that a packet is sent to, and what it is given."""
    if hasattr(packet, "node"):
        return str(packet.node), packet.arg
    arguments = packet.get("value") if isinstance(packet, dict) else None
    if isinstance(arguments, list) and len(arguments) > 1:
        return str(arguments[0]), arguments[1]
    return "?", packet


_TYPES = frozenset(("human", "ai", "tool", "system", "function", "chat", "developer", "remove"))
_ROLES = frozenset(("user", "assistant", "tool", "system", "function", "developer"))


def is_message(value: Any) -> bool:
    """Whether it is a message of LangChain, or one with a role."""
    if not isinstance(value, dict) or "content" not in value:
        return False
    kind = str(value.get("type")).removesuffix("MessageChunk").lower()
    return kind in _TYPES or value.get("role") in _ROLES


def are_messages(value: Any) -> bool:
    """Whether it is a conversation."""
    return isinstance(value, list) and bool(value) and all(map(is_message, value))


def role_of(message: dict[str, Any]) -> str:
    """The role in the words of the model's protocol."""
    kind = str(message.get("type") or message.get("role")).removesuffix("MessageChunk").lower()
    return {"human": "user", "ai": "assistant"}.get(kind, kind)
