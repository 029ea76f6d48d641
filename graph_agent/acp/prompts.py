"""The content of a prompt as a message: text, files that are mentioned, files whose text came along, images."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from graph_agent.acp.jsonrpc import INVALID_PARAMS, RpcError
from graph_agent.app.chat_input import save_image
from graph_agent.errors import UsageError

__all__ = ["Prompt", "read_prompt"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A message of the user."""

    text: str
    """What was typed, with a mention `@"PATH"` of each linked file and image."""
    attachment: str = ""
    """The text of files that came along, such as a buffer that was not saved."""

    @property
    def whole(self) -> str:
        """Both in one, for a message that has to wait."""
        return "\n\n".join(filter(None, (self.text, self.attachment)))


def read_prompt(blocks: Any) -> Prompt:
    """The message that content blocks make.

    Raises:
        RpcError: they are not content blocks, or of a kind that is not supported.
    """
    if not isinstance(blocks, list) or not blocks:
        raise RpcError(INVALID_PARAMS, "prompt must be a list of one or more content blocks.")
    texts, attached = [""], list[str]()
    for block in blocks:
        if not isinstance(block, Mapping):
            raise RpcError(INVALID_PARAMS, "A content block must be an object.")
        match block.get("type"):
            case "text":
                texts[-1] += _require_text(block, "text")
            case "resource_link":
                texts[-1] += _mention(_require_text(block, "uri"), str(block.get("name") or ""))
            case "resource":
                attached.append(_attachment(block.get("resource")))
            case "image":
                texts.append(_image(block))
            case other:
                text = f"Content of type {other!r} is not supported; text, images and resources are."
                raise RpcError(INVALID_PARAMS, text)
    text = "\n\n".join(filter(None, texts))
    if not text.strip() and not attached:
        raise RpcError(INVALID_PARAMS, "The prompt is empty.")
    return Prompt(text or "Read what is attached.", "\n\n".join(attached))


def _require_text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, f"{name} must be a string.")
    return value


def _mention(uri: str, name: str) -> str:
    """A file is mentioned as a person would; what is elsewhere is named with its address."""
    path = _local_path(uri)
    if path is None or '"' in path or not path.isprintable():
        return f"[{name}]({uri})" if name else uri
    return f'@"{path}"{_lines(uri.partition("#")[2])}'


def _lines(fragment: str) -> str:
    """`#L10` and `#L10-L20` stay readable behind a mention, which has no lines of its own if it is quoted."""
    return f" ({fragment.replace('L', 'line ', 1)})" if fragment.startswith("L") else ""


def _local_path(uri: str) -> str | None:
    """The absolute path that an address names; None if it names anything else."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path) if parts.scheme == "file" else uri
    is_local = parts.scheme in ("", "file") and parts.netloc in ("", "localhost")
    return path if is_local and Path(path).is_absolute() and "\0" not in path else None


def _attachment(resource: Any) -> str:
    """The text of a resource as a mentioned file is added to a message."""
    if not isinstance(resource, Mapping):
        raise RpcError(INVALID_PARAMS, "resource must be an object.")
    uri = _require_text(resource, "uri")
    name = (_local_path(uri) or uri).replace('"', "")
    if "text" not in resource:
        raise RpcError(INVALID_PARAMS, f"{name} is binary: attach a file with text, or an image.")
    inner = _require_text(resource, "text").replace("</file", "<\\/file")
    return f'<file path="{name}">\n{inner}\n</file>'


def _image(block: Mapping[str, Any]) -> str:
    """A mention of the image, which is kept as one that was pasted into the chat."""
    try:
        data = base64.b64decode(_require_text(block, "data"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RpcError(INVALID_PARAMS, f"The data of an image is not Base64: {error}.") from error
    name = Path(_local_path(str(block.get("uri") or "")) or "image").name
    try:
        return f'@"{save_image(data, name).path}"'
    except UsageError as refusal:
        raise RpcError(INVALID_PARAMS, str(refusal)) from refusal
