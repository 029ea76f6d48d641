"""Whether a rule about hosts covers one: compared label by label, never as a piece of text."""

from collections.abc import Sequence

__all__ = ["covers_host"]


def covers_host(pattern: str, target: str, *, is_strict: bool) -> bool:
    """Compare `HOST` or `HOST:PORT` with a target of the same form, whose port is left out where it is usual.

    Without a port a rule that forbids (`is_strict`) holds for every port, one that allows for the usual one.
    A first label `*` stands for one label or more.
    """
    wanted, wanted_port = _split(pattern)
    host, port = _split(target)
    if wanted_port not in (port, "*") and (wanted_port or not is_strict):
        return False
    return _covers_labels(_labels(wanted), _labels(host))


def _split(text: str) -> tuple[str, str]:
    text = text.strip().casefold()
    if text.startswith("["):
        host, _, rest = text.partition("]")
        return host[1:], rest.removeprefix(":")
    if text.count(":") > 1:
        return text, ""
    host, _, port = text.partition(":")
    return host, port


def _labels(host: str) -> Sequence[str]:
    return host.removesuffix(".").split(".")


def _covers_labels(wanted: Sequence[str], labels: Sequence[str]) -> bool:
    if wanted[0] != "*":
        return wanted == labels
    rest = wanted[1:]
    return not rest or (len(labels) > len(rest) and labels[-len(rest) :] == rest)
