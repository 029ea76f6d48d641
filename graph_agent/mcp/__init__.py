"""Tools that other programs offer over the Model Context Protocol."""

__all__: list[str] = []
