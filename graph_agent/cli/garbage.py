"""When the search for cyclic garbage runs: not while the program loads, and later only in what came since.

Loading makes hundreds of thousands of objects and hardly any garbage. Looking through all of them again and again
takes an eighth of the time to the first request, and each full look later some 50 ms of a step.
"""

import gc

__all__ = ["search_from_now_on", "search_little"]

_LOADING_OBJECTS = 1_000_000
"""More than loading makes; a command that opens no thread, and reads a large database, is searched at this pace."""

_USUAL = gc.get_threshold()


def search_little() -> None:
    """From the start of the program on."""
    gc.set_threshold(_LOADING_OBJECTS, *_USUAL[1:])


def search_from_now_on() -> None:
    """All is loaded: what there is stays for good. Not so a second time: then there is a thread that was closed."""
    if gc.get_threshold() != _USUAL:
        gc.freeze()
        gc.set_threshold(*_USUAL)
