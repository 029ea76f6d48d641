"""Tools' values as the JSON values that records, journal and events hold."""

import json
from typing import Any

from graph_agent.ports import Finding, Outcome
from tools.base import BaseTool, BlobStore, InterruptedCall, Preview, ToolResult
from tools.blocking import in_thread

__all__ = ["as_outcome", "as_preview", "reconciled", "stored_preview"]

_PREVIEW_CHARS = 20_000


def as_outcome(result: ToolResult) -> Outcome:
    """The result of a call that ran to its end."""
    return Outcome(
        status="success" if result.error is None else "error",
        output=_storable(result.output),
        error=None if result.error is None else _storable(result.error),
        display=_storable(result.display),
        metadata=_as_json(result.metadata),
    )


async def reconciled(tool: BaseTool, call: InterruptedCall) -> Finding:
    """What a tool finds out about a call that was broken off."""
    found = await tool.reconcile(call)
    return Finding(found.verdict, found.detail)


def as_preview(preview: Preview, blobs: BlobStore) -> dict[str, Any]:
    """The preview with a bounded text; the whole of a long one lies in a blob, and the text says so."""
    text = _storable(preview.text)
    shown: dict[str, Any] = {"kind": preview.kind, "text": text, "seen": preview.seen}
    if len(text) <= _PREVIEW_CHARS:
        return shown
    end = text.rfind("\n", 0, _PREVIEW_CHARS) + 1 or _PREVIEW_CHARS
    lines = text.count("\n", end) + 1
    reference = blobs.put(text.encode())
    notice = (
        f"[… {lines} more lines, {len(text) - end} characters, are not shown here; the whole text is {reference}]"
    )
    return {**shown, "text": f"{text[:end]}{notice}\n", "full": reference, "full_chars": len(text)}


async def stored_preview(preview: Preview, blobs: BlobStore) -> dict[str, Any]:
    """The same; a thread is only waited for where there is a blob to write."""
    if len(preview.text) <= _PREVIEW_CHARS:
        return as_preview(preview, blobs)
    return await in_thread(as_preview, preview, blobs)


def _as_json(metadata: dict[str, Any]) -> dict[str, Any]:
    # A tool may put anything there; what is not JSON becomes text, so that a record can always be stored.
    plain: dict[str, Any] = json.loads(_storable(json.dumps(metadata, default=str, ensure_ascii=False)))
    return plain


def _storable(text: str) -> str:
    """The text without what UTF-8 cannot hold: lone surrogates, as undecodable file names leave them."""
    return text.encode("utf-8", "replace").decode("utf-8")
