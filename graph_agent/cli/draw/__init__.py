"""Drawings of a graph: one layout, made once in character cells, and what draws it as text, SVG, PNG or Mermaid."""

__all__: list[str] = []
