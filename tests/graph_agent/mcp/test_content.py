import base64

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

from graph_agent.mcp.content import text_of

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

    assert text_of(result).split("\n") == [
        "one",
        "[image/png, 6 bytes, not shown]",
        "[notes: demo://a]",
        "[demo://a]",
        "inside",
        "[demo://a, 6 bytes, not shown]",
    ]


def test_structured_content_stands_in_where_there_is_no_other() -> None:
    assert text_of(CallToolResult(content=[], structuredContent={"a": "ü"})) == '{\n  "a": "ü"\n}'
    assert text_of(CallToolResult(content=[])) == ""
