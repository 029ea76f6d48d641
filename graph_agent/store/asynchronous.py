"""What the framework's savers offer and this program does not: the database belongs to a thread of its own."""

from typing import Any, NoReturn

from graph_agent.errors import InternalError

__all__ = ["AsynchronousOnly"]


class AsynchronousOnly:
    """Refuses to be read or written on the thread of the caller."""

    def get_tuple(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - refused whatever is asked
        """Not offered: the database belongs to its own thread."""
        raise _asynchronous_only("get_tuple")

    def list(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - refused whatever is asked
        """Not offered."""
        raise _asynchronous_only("list")

    def put(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - refused whatever is asked
        """Not offered."""
        raise _asynchronous_only("put")

    def put_writes(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - refused whatever is asked
        """Not offered."""
        raise _asynchronous_only("put_writes")

    def delete_thread(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - refused whatever is asked
        """Not offered."""
        raise _asynchronous_only("delete_thread")

    def get_delta_channel_history(self, *args: Any, **options: Any) -> NoReturn:  # noqa: ARG002 - refused whatever is asked
        """Not offered."""
        raise _asynchronous_only("get_delta_channel_history")


def _asynchronous_only(method: str) -> InternalError:
    return InternalError(f"checkpoints are read and written asynchronously only: use `a{method}` and `ainvoke`")
