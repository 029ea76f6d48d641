"""A server without the SDK that lists what no SDK would: schemas of every kind, long names, pages.

`python mcp_odd.py` answers each call with the name of the tool and the arguments it was sent.
"""

import json
import sys
from typing import Any

__all__ = ["LONG_NAME", "TOOLS"]

LONG_NAME = "synchronize-all-customer-data-across-multiple-systems-and-regions"
TOOLS: list[dict[str, Any]] = [
    {"name": "now", "inputSchema": {"type": "object"}},
    {"name": "any", "inputSchema": {}},
    {"name": LONG_NAME, "description": "long", "inputSchema": {"type": "object", "properties": {"to": {}}}},
    {"name": f"{LONG_NAME}!", "inputSchema": {"type": "object"}},
    {"name": "a b", "inputSchema": {"type": "object"}},
    {"name": "a.b", "inputSchema": {"type": "object"}},
    {
        "name": "strict",
        "description": "d" * 10_000,
        "inputSchema": {
            "type": "object",
            "properties": {"count": {"type": "integer"}, "of": {"$ref": "http://example.invalid/schema"}},
            "required": ["count"],
        },
    },
    {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "no such type"}}}},
]
_PAGE = 3


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    parameters = request.get("params") or {}
    match request["method"]:
        case "initialize":
            version = parameters["protocolVersion"]
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "odd", "version": "1"},
            }
        case "tools/list":
            start = int(parameters.get("cursor") or 0)
            page = {"tools": TOOLS[start : start + _PAGE]}
            return page if start + _PAGE >= len(TOOLS) else {**page, "nextCursor": str(start + _PAGE)}
        case "tools/call" if parameters["name"] == "half":
            return {"content": [{"type": "text", "text": "half of \ud83d"}]}
        case "tools/call" if parameters["name"] == "nonsense":
            return {"sense": None}
        case "tools/call":
            text = json.dumps([parameters["name"], parameters.get("arguments")])
            return {"content": [{"type": "text", "text": text}]}
    return {}


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            refuses = (request.get("params") or {}).get("name") == "refuse"
            error = {"error": {"code": -32000, "message": "no such customer"}}
            answer = {"jsonrpc": "2.0", "id": request["id"], **(error if refuses else {"result": _answer(request)})}
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    sys.stdout.write("a banner that is no message\n")
    _serve()
