"""Tools that other programs offer over the Model Context Protocol. Knows no graph, no model and no terminal."""

__all__: list[str] = []
