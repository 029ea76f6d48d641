"""Wires the concrete parts; the only place that does. Each module here loads what it wires, this one nothing."""

__all__: list[str] = []
