"""What every match of a pattern must hold, as far as a cautious look at the pattern can tell. Searches nothing."""

import re
from dataclasses import dataclass, field

__all__ = ["Certain", "certain"]

_TOKEN = re.compile(r"\\(?:.|$)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_ \-=/<>:;,\"'!@%&]")
_NOT_JUDGED = re.compile(
    r"\(\?(?!:|=|!|<=|<!|P?<[A-Za-z_])|\[:|\(\*|\\[a-zA-Z0-9](?<![wWsSdDbBntrAzZ])",
)
"""Flags, conditions and comments; classes by name; verbs; escapes that stand for other characters."""
_IGNORING_CASE = "(?i)"
_OTHER_CASES = re.compile("[fiksFIKS]")
"""Letters that letters beyond ASCII are the other case of, alone or with their neighbour."""


@dataclass(frozen=True)
class Certain:
    """Each match holds at least one of the texts; nothing is known where there are none."""

    texts: tuple[str, ...] = ()
    ignores_case: bool = False

    def may_be_in(self, text: str) -> bool:
        """Whether a match in this text is possible."""
        return not self.texts or self.ignores_case or any(one in text for one in self.texts)


def certain(pattern: str, *, is_literal: bool) -> Certain:
    """The longest plain ASCII texts, one for each alternative."""
    if is_literal:
        return _all_of([max(re.findall(r"[ -~]+", pattern), key=len, default="")], ignores_case=False)
    ignores_case = pattern.startswith(_IGNORING_CASE)
    body = pattern.removeprefix(_IGNORING_CASE)
    if _NOT_JUDGED.search(body):
        return Certain()
    alternatives = _alternatives(body)
    if ignores_case:
        alternatives = [[part for run in runs for part in _OTHER_CASES.split(run)] for runs in alternatives]
    return _all_of([max(runs, key=len) for runs in alternatives], ignores_case=ignores_case)


def _all_of(texts: list[str], *, ignores_case: bool) -> Certain:
    return Certain(tuple(dict.fromkeys(texts)), ignores_case) if all(texts) else Certain()


@dataclass
class _Reading:
    """Runs of plain text outside of groups, by alternative."""

    alternatives: list[list[str]] = field(default_factory=lambda: [[""]])
    depth: int = 0
    is_counting: bool = False
    """Inside of braces."""

    def take(self, piece: str) -> None:
        runs = self.alternatives[-1]
        if self.is_counting:
            self.is_counting = piece != "}"
            return
        if piece in ("?", "*", "{"):
            # What stands before it may be absent.
            runs[-1] = runs[-1][:-1]
            self.is_counting = piece == "{"
        self.depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and self.depth == 0:
            self.alternatives.append([""])
        elif self.depth == 0 and _PLAIN.fullmatch(piece):
            runs[-1] += piece
        else:
            runs.append("")


def _alternatives(pattern: str) -> list[list[str]]:
    reading = _Reading()
    for piece in _TOKEN.findall(pattern):
        reading.take(piece)
    return reading.alternatives
