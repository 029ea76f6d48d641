"""A small quick server with an effect: `python mcp_notes.py FILE` appends each note to FILE."""

import json
import os
import sys
import time
from typing import Any

__all__: list[str] = []

_NOTE = {"name": "note", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            about = {"name": "notes", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        case "tools/list":
            return {"tools": [_NOTE]}
        case "tools/call":
            text = request["params"]["arguments"]["text"]
            descriptor = os.open(sys.argv[1], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
            os.write(descriptor, f"{text}\n".encode())
            os.close(descriptor)
            time.sleep(0.05)
            return {"content": [{"type": "text", "text": f"noted {text}"}]}
    return {}


for _line in sys.stdin:
    _request = json.loads(_line)
    if "id" in _request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": _request["id"], "result": _answer(_request)}) + "\n")
        sys.stdout.flush()
