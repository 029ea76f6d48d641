"""Tools that talk to the web."""

__all__: list[str] = []
