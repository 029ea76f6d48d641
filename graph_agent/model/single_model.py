"""What a model is that stands alone: behind it there is no endpoint, and so no other to take instead."""

from graph_agent.errors import UsageError

__all__ = ["SingleModel"]


class SingleModel:
    """Implements `Models`."""

    def __init__(self, why: str) -> None:
        self._why = why
        """Why no other can be taken; ends the sentence that refuses one."""

    @property
    def name(self) -> str:
        """See `Models.name`."""
        return ""

    @property
    def chosen(self) -> dict[str, str]:
        """Nothing: there was nothing to choose."""
        return {}

    async def names(self) -> tuple[str, ...]:
        """See `Models.names`: none."""
        return ()

    async def switch(self, name: str) -> None:
        """See `Models.switch`.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{name!r} cannot be asked: {self._why}")

    async def close(self) -> None:
        """Nothing was opened."""
