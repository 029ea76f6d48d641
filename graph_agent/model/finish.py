"""What the reason says with which a server ends a reply. Knows nothing of the reply."""

import re

__all__ = ["broke_off", "cut_by"]

_CUT = (
    (
        re.compile(r"length|max_?(?:output_?)?tokens|(?:model_)?context_window_exceeded|model_length|token_limit"),
        "the model's output limit",
    ),
    (
        re.compile(r"content_?filter(?:ed)?|sensitive|safety|recitation|prohibited_content|blocklist|spii|refusal"),
        "the provider's content filter",
    ),
)
"""Reasons that leave the reply incomplete, even where the arguments of its newest call look whole."""

_BROKE_OFF = frozenset(
    ("abort", "aborted", "cancelled", "error", "insufficient_system_resource", "network_error", "timeout")
)
"""Reasons of servers that gave up in the middle, without any status that would say so."""


def cut_by(reason: str) -> str:
    """What cut the reply off, in words; empty where it came to its own end."""
    told = reason.strip().lower()
    return next((words for pattern, words in _CUT if pattern.fullmatch(told)), "")


def broke_off(reason: str) -> bool:
    """Whether the server itself failed, so that asking again may help."""
    return reason.strip().lower() in _BROKE_OFF
