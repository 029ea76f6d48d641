"""A collector in a process of its own: takes OTLP over HTTP as JSON, decoded by OpenTelemetry's own classes.

A request that these cannot decode, a field that the protocol does not have included, is answered with 400.
"""

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError  # type: ignore[import-untyped]  # no types come with it
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

__all__ = ["OtlpReceiver", "otlp_receiver"]

_KINDS: dict[str, Any] = {"/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest}
_IDS = ("traceId", "spanId", "parentSpanId")


class OtlpReceiver:
    """A running receiver, and what it has received."""

    def __init__(self, url: str, received: Path) -> None:
        self.url = url
        self._received = received

    def spans(self) -> list[dict[str, Any]]:
        """Every span, in the order of arrival, with its attributes and those of its resource as plain values."""
        return [
            {**span, "attributes": _values(span), "resource": _values(resource["resource"])}
            for request in self._requests("/v1/traces")
            for resource in request["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def metrics(self) -> list[dict[str, Any]]:
        """Every metric, in the order of arrival."""
        return [
            metric
            for request in self._requests("/v1/metrics")
            for resource in request["resourceMetrics"]
            for scope in resource["scopeMetrics"]
            for metric in scope["metrics"]
        ]

    def refusals(self) -> list[str]:
        """Why requests were not decoded."""
        return [line["refused"] for line in self._lines() if "refused" in line]

    def _requests(self, path: str) -> list[dict[str, Any]]:
        return [line["request"] for line in self._lines() if line.get("path") == path]

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._received.read_text().splitlines()]


@contextmanager
def otlp_receiver(folder: Path) -> Iterator[OtlpReceiver]:
    """Start one; what it receives is in a file of the folder."""
    received = folder / "received.jsonl"
    received.touch()
    program = [sys.executable, "-m", "tests.fakes.otlp_receiver", str(received)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            yield OtlpReceiver(f"http://127.0.0.1:{port}", received)
        finally:
            process.terminate()


def _values(owner: dict[str, Any]) -> dict[str, Any]:
    return {one["key"]: next(iter(one["value"].values())) for one in owner.get("attributes", [])}


def _with_ids(value: Any, convert: Any) -> Any:
    """OTLP writes ids as hexadecimal digits, where JSON of protocol buffers has Base64."""
    if isinstance(value, list):
        return [_with_ids(one, convert) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: convert(one) if key in _IDS else _with_ids(one, convert) for key, one in value.items()}


def _decode(path: str, body: bytes) -> dict[str, Any]:
    """What the protocol's classes make of a request.

    Raises:
        KeyError: nothing is received at this path.
        ParseError, ValueError: it is not such a request.
    """
    given = _with_ids(json.loads(body), lambda digits: base64.b64encode(bytes.fromhex(digits)).decode())
    message = ParseDict(given, _KINDS[path]())
    whole = _KINDS[path].FromString(message.SerializeToString())
    return dict(_with_ids(MessageToDict(whole), lambda text: base64.b64decode(text).hex()))


def _serve(received: Path) -> None:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
            """Nothing is printed."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, line = 200, dict[str, Any]()
            try:
                line = {"path": self.path, "request": _decode(self.path, body)}
            except (KeyError, ParseError, ValueError) as error:
                status, line = 400, {"refused": f"{self.path}: {error}"}
            with received.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
