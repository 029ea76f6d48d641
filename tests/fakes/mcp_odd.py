"""A server without the SDK that lists what no SDK would: schemas of every kind, long names, pages.

`python mcp_odd.py [--wait S] [--without-tools] [--restless] [--broken]` answers each call with its tool and the
arguments it was sent.
"""

import json
import sys
import time
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
            "properties": {"count": {"type": "integer"}, "of": {"$ref": "#/$defs/of"}},
            "required": ["count"],
            "$defs": {"of": {}},
        },
    },
]
_BROKEN = {"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "no such type"}}}}
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
            listed = [*TOOLS, _BROKEN] if "--broken" in sys.argv else TOOLS
            page = {"tools": listed[start : start + _PAGE]}
            return page if start + _PAGE >= len(listed) else {**page, "nextCursor": str(start + _PAGE)}
        case "tools/call":
            return _result(parameters["name"], parameters.get("arguments"))
    return {}


def _result(name: str, arguments: object) -> dict[str, Any]:
    match name:
        case "nonsense":
            return {"sense": None}
        case "half":
            text = "half of \ud83d"
        case "asks":
            text = json.dumps(
                [_refusal(method) for method in ("sampling/createMessage", "elicitation/create", "no/such")]
            )
        case "wails":
            text = "ow " * 100_000
        case _:
            if name == "floods":
                _flood()
            text = json.dumps([name, arguments])
    return {"content": [{"type": "text", "text": text}], "isError": name == "wails"}


def _sent(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def _refusal(method: str) -> str:
    """What the client says when it is asked this."""
    _sent(
        {
            "id": method,
            "method": method,
            "params": {"messages": [], "maxTokens": 1, "message": "?", "requestedSchema": {}},
        }
    )
    return str(json.loads(sys.stdin.readline()).get("error", {}).get("message"))


def _flood() -> None:
    """More than any pipe holds, on both sides, and a line longer than anybody wants."""
    for number in range(3_000):
        sys.stderr.write(f"line {number} {'x' * 1_000}\n")
        sys.stdout.write("no message\n")
        _sent({"method": "notifications/message", "params": {"level": "error", "data": "busy"}})
    sys.stderr.flush()
    for _ in range(40):
        sys.stdout.write("x" * 1024 * 1024)
    sys.stdout.write("\n")


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            if request["method"] == "tools/list" and "--without-tools" in sys.argv:
                _sent({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
                continue
            refuses = (request.get("params") or {}).get("name") == "refuse"
            error = {"error": {"code": -32000, "message": "no such customer"}}
            answer = {"id": request["id"], **(error if refuses else {"result": _answer(request)})}
            _sent(answer)
            if request["method"] == "tools/list" and "--restless" in sys.argv:
                sys.stderr.write("listed\n")
                sys.stderr.flush()
                _sent({"method": "notifications/tools/list_changed"})


if __name__ == "__main__":
    if "--wait" in sys.argv:
        time.sleep(float(sys.argv[sys.argv.index("--wait") + 1]))
    sys.stdout.write("a banner that is no message\n")
    _serve()
