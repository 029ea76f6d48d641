import base64

import pytest
from mcp.types import (
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import AnyUrl

from graph_agent.mcp.tools import result_text

_DATA = base64.b64encode(b"123456").decode()


def test_text_is_told_and_what_is_no_text_is_named() -> None:
    uri = AnyUrl("demo://a")
    result = CallToolResult(
        content=[
            TextContent(type="text", text="one"),
            ImageContent(type="image", data=_DATA, mimeType="image/png"),
            ResourceLink(type="resource_link", name="notes", uri=uri),
            EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, text="inside")),
            EmbeddedResource(type="resource", resource=BlobResourceContents(uri=uri, blob=_DATA)),
        ]
    )

    assert result_text(result).split("\n") == [
        "one",
        "[image/png, 6 bytes, not shown]",
        "[notes: demo://a]",
        "[demo://a]",
        "inside",
        "[demo://a, 6 bytes, not shown]",
    ]


def test_what_is_no_text_is_kept_where_there_is_a_place_for_it() -> None:
    kept: list[bytes] = []

    def keep(data: bytes) -> str:
        kept.append(data)
        return "blob:1"

    image = ImageContent(type="image", data=_DATA, mimeType="image/png")
    broken = ImageContent(type="image", data="A", mimeType="image/gif")

    told = result_text(CallToolResult(content=[image, broken]), keep)

    assert told == "[image/png, 6 bytes, kept as blob:1]\n[image/gif, not shown: its data is not base64]"
    assert kept == [b"123456"]


@pytest.mark.parametrize(
    ("texts", "structured", "told"),
    [
        (['{"a": 1}'], {"a": 1}, '{"a": 1}'),
        (["plain"], {"result": "plain"}, "plain"),
        (["1", "2"], {"result": [1, 2]}, "1\n2"),
        (["3"], {"result": 3}, "3"),
        (["2 found"], {"ids": [1]}, '2 found\n{\n  "ids": [\n    1\n  ]\n}'),
    ],
)
def test_structured_content_is_told_once(texts: list[str], structured: dict[str, object], told: str) -> None:
    content = [TextContent(type="text", text=text) for text in texts]

    assert result_text(CallToolResult(content=list(content), structuredContent=structured)) == told


def test_structured_content_stands_in_where_there_is_no_other() -> None:
    assert result_text(CallToolResult(content=[], structuredContent={"a": "ü"})) == '{\n  "a": "ü"\n}'
    assert result_text(CallToolResult(content=[])) == ""
