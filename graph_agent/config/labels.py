"""What models that are none are called, in the status line and wherever else they are told apart by it."""

__all__ = ["OFFLINE_LABEL"]

OFFLINE_LABEL = "offline command mode, no model"
