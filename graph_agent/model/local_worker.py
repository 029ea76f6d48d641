"""Runs the requests of a local model in a thread, one after another, so that they can be broken off at any instant.

The runtime itself notices a stop between two tokens only; nobody waits for that but the next request.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress

from graph_agent.errors import ModelError
from graph_agent.model.local_runtime import Ask, Generated, Runtime

__all__ = ["Worker"]

_OF_A_LIBRARY = (RuntimeError, ValueError, TypeError, LookupError, OSError, MemoryError)
"""What native code behind Python raises."""

_LEAVING_S = 3.0
"""Longest wait for the end of a generation when the model is closed."""


class Worker:
    """The thread belongs to one request; a daemon, because a prompt that is being read holds up no exit."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    async def generate(self, ask: Ask, on_piece: Callable[[str], None]) -> Generated:
        """The answer; its pieces are told in the event loop. Cancelling ends it at the next token.

        Raises:
            ModelError: see `Runtime.generate`.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Generated] = loop.create_future()
        stop = self._stop = threading.Event()

        def tell(piece: str) -> bool:
            if not stop.is_set():
                _later(loop, lambda: None if stop.is_set() else on_piece(piece))
            return stop.is_set()

        self._thread = threading.Thread(target=self._work, args=(ask, tell, loop, done), daemon=True)
        self._thread.start()
        try:
            return await done
        finally:
            stop.set()

    def _work(
        self,
        ask: Ask,
        tell: Callable[[str], bool],
        loop: asyncio.AbstractEventLoop,
        done: "asyncio.Future[Generated]",
    ) -> None:
        failure = ModelError("The local model broke off.")
        generated: Generated | None = None
        try:
            generated = self._runtime.generate(ask, tell)
        except ModelError as error:
            failure = error
        except _OF_A_LIBRARY as error:
            failure = ModelError(f"The local model failed: {str(error) or type(error).__name__}.")
        finally:
            _later(loop, lambda: _settle(done, generated, failure))

    async def close(self) -> None:
        """End what still generates."""
        self._stop.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _LEAVING_S)


def _settle(done: "asyncio.Future[Generated]", generated: Generated | None, failure: ModelError) -> None:
    if done.done():
        return
    if generated is None:
        done.set_exception(failure)
    else:
        done.set_result(generated)


def _later(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """A loop that is closed meanwhile has nobody who would listen."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)
