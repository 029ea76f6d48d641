"""The use cases, and the composition root in `opening.py`. Importing this package loads none of them."""

__all__: list[str] = []
