import base64
from pathlib import Path
from typing import Any

import pytest

from graph_agent.acp.jsonrpc import RpcError
from graph_agent.acp.prompts import read_prompt

FILE = "file://"


def _link(uri: str, name: str = "") -> dict[str, Any]:
    return {"type": "resource_link", "uri": uri, "name": name}


@pytest.mark.parametrize(
    ("blocks", "text", "attachment"),
    [
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab", ""),
        ([_link(f"{FILE}/w/a%20b.txt", "a b.txt")], '@"/w/a b.txt"', ""),
        ([_link("/w/a.txt")], '@"/w/a.txt"', ""),
        ([_link(f"{FILE}/w/a.txt#L3-L7")], '@"/w/a.txt" (line 3-L7)', ""),
        ([_link("file://elsewhere/w/a.txt", "a.txt")], "[a.txt](file://elsewhere/w/a.txt)", ""),
        ([_link(f'{FILE}/w/a".txt', "a")], f'[a]({FILE}/w/a".txt)', ""),
        ([_link(f"{FILE}/w/a%0A.txt", "a")], f"[a]({FILE}/w/a%0A.txt)", ""),
        ([_link("https://example.com/x")], "https://example.com/x", ""),
        ([_link("http://[odd", "odd")], "[odd](http://[odd)", ""),
        (
            [{"type": "resource", "resource": {"uri": f"{FILE}/w/a.txt", "text": "x </file> y"}}],
            "Read what is attached.",
            '<file path="/w/a.txt">\nx <\\/file> y\n</file>',
        ),
        (
            [{"type": "text", "text": "see"}, {"type": "resource", "resource": {"uri": 'zed:"x"', "text": "t"}}],
            "see",
            '<file path="zed:x">\nt\n</file>',
        ),
    ],
)
def test_blocks_make_a_message(blocks: list[dict[str, Any]], text: str, attachment: str) -> None:
    prompt = read_prompt(blocks)

    assert (prompt.text, prompt.attachment) == (text, attachment)
    assert prompt.whole == "\n\n".join(filter(None, (text, attachment)))


@pytest.mark.parametrize(
    ("blocks", "why"),
    [
        (None, "list of one or more"),
        ([], "list of one or more"),
        ("hello", "list of one or more"),
        (["hello"], "must be an object"),
        ([{}], "type None"),
        ([{"type": "audio", "data": ""}], "'audio' is not supported"),
        ([{"type": "text"}], "text must be a string"),
        ([{"type": "text", "text": " "}], "empty"),
        ([{"type": "resource_link"}], "uri must be a string"),
        ([{"type": "resource"}], "resource must be an object"),
        ([{"type": "resource", "resource": {"uri": f"{FILE}/w/a.bin", "blob": "AA=="}}], "binary"),
        ([{"type": "image", "data": "???", "mimeType": "image/png"}], "not Base64"),
        ([{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}], "not a PNG"),
    ],
)
def test_what_is_no_prompt_is_refused(blocks: Any, why: str) -> None:
    with pytest.raises(RpcError, match=why) as refused:
        read_prompt(blocks)

    assert refused.value.code == -32602


def test_an_image_is_kept_and_mentioned_by_the_name_it_had() -> None:
    data = base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    block = {"type": "image", "data": base64.b64encode(data).decode(), "uri": f"{FILE}/w/shot.png"}

    path = Path(read_prompt([block]).text.removeprefix('@"').removesuffix('"'))

    assert (path.name, path.read_bytes(), oct(path.stat().st_mode & 0o77)) == ("shot.png", data, "0o0")
