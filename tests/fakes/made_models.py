"""Factories that a setting may name, and what they make."""

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

__all__ = ["fails", "makes_nothing", "speaks"]


class _Speaks(GenericFakeChatModel):
    def bind_tools(self, tools: object, **_: object) -> "_Speaks":
        assert tools
        return self


def speaks() -> GenericFakeChatModel:
    return _Speaks(messages=iter([AIMessage("hello there")]))


def fails() -> GenericFakeChatModel:
    raise RuntimeError("no licence")


def makes_nothing() -> str:
    return "a text"
