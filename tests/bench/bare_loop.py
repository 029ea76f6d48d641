"""What a step costs without any agent: ChatOpenAI sends requests that an agent sent before; nothing else is done.

python -m tests.bench.bare_loop BASE_URL RECORDED      RECORDED: one request body a line
"""

import json
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_openai import ChatOpenAI

__all__: list[str] = []


def main(base_url: str, recorded: Path) -> None:
    """Send each body's messages and tools, streamed where it was."""
    bodies = [json.loads(line) for line in recorded.read_text(encoding="utf-8").splitlines()]
    messages = [convert_to_messages(body["messages"]) for body in bodies]
    model = ChatOpenAI(model="fake-model", base_url=base_url, api_key=lambda: "any").bind(tools=bodies[0]["tools"])
    for body, conversation in zip(bodies, messages, strict=True):
        _ask(model, conversation, streams=bool(body.get("stream")))


def _ask(model: Any, conversation: list[BaseMessage], *, streams: bool) -> None:
    if not streams:
        model.invoke(conversation)
        return
    for _ in model.stream(conversation):
        pass


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
