"""What the formats have in common: typed fields, media, and the content of tool results.

A result is plain text or a list of text and media blocks. Media is shown by a short name and weighed by the
most that any provider charges for it.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from ctxgc.core import Part, Role
from ctxgc.errors import MessageError
from ctxgc.wire.json_text import dump

Json = dict[str, Any]


def text_field(data: Json, key: str, where: str = "") -> str:
    """Return a field that must be a string."""
    value = data.get(key)
    if not isinstance(value, str):
        raise wrong(where + key, "a string", value)
    return value


def object_field(data: Json, key: str, where: str = "") -> Json:
    """Return a field that must be an object."""
    value = data.get(key)
    if not isinstance(value, dict):
        raise wrong(where + key, "an object", value)
    return value


def blocks_field(data: Json, key: str, where: str = "", *, wanted: str = "a list") -> list[Json]:
    """Return a field that must be a list of objects."""
    value = data.get(key)
    if not isinstance(value, list):
        raise wrong(where + key, wanted, value)
    for index, block in enumerate(value):
        if not isinstance(block, dict):
            raise wrong(f"{where}{key}[{index}]", "an object", block)
    return value


def wrong(field: str, wanted: str, value: Any) -> MessageError:
    """Return the error for a field of the wrong type."""
    found = "but it is missing" if value is None else f"got {type(value).__name__}"
    return MessageError(
        f"`{field}` must be {wanted}, {found}",
        hint="see the provider's reference for this message",
        field=field,
    )


def role_field(data: Json, roles: Mapping[str, Role]) -> Role:
    """Return our name for the role of a message; `roles` has those that the format knows."""
    name = data.get("role")
    role = roles.get(name) if isinstance(name, str) else None
    if role is None:
        near = difflib.get_close_matches(str(name), roles, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known roles: {', '.join(roles)}"
        raise MessageError(f"`role` {name!r} is unknown", hint=hint, field="role")
    return role


# -- Media: names and tokens


MOST_OF_AN_IMAGE = 4_784
_LEAST_OF_A_FILE = 1_600
_BYTES_PER_TOKEN = {"audio": 400, "document": 20, "file": 20}
_BYTES_PER_TOKEN_OF_TEXT = 4
_HEAD = 64 * 1024
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?[^,]{0,200},")


def media_part(kind: str, payload: Any, path: tuple[str | int, ...], media_type: str = "") -> Part:
    """Return the part for a media block; `payload` is base64 data, a data URL, a URL or a file id."""
    data, media_type = _split(payload, media_type)
    label, tokens = describe(kind, data, media_type)
    return Part(kind="media", text=label, path=path, media_tokens=tokens)


def describe(kind: str, payload: str, media_type: str = "") -> tuple[str, int]:
    """Return a short name for media, different for different content, and its tokens."""
    digest = hashlib.sha256(payload.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    name = f"[{kind} {media_type} {digest}]" if media_type else f"[{kind} {digest}]"
    if kind == "image":
        return name, image_tokens(payload)
    size = len(payload) * 3 // 4
    each = (
        _BYTES_PER_TOKEN_OF_TEXT
        if media_type.startswith("text/")
        else _BYTES_PER_TOKEN.get(kind, 20)
    )
    return name, max(_LEAST_OF_A_FILE, size // each)


def image_tokens(payload: str) -> int:
    """Return the most that any provider charges for an image: by area, or by tiles of 512 pixels."""
    size = _size(_head(payload))
    if size is None or not all(size):
        return MOST_OF_AN_IMAGE
    width, height = size
    shrink = min(1.0, 2048 / max(size), 768 / min(size))
    tiles = math.ceil(round(width * shrink, 3) / 512) * math.ceil(round(height * shrink, 3) / 512)
    area = min(MOST_OF_AN_IMAGE, math.ceil(width * height / 750))
    return max(area, 85 + 170 * tiles)


def _split(payload: Any, media_type: str) -> tuple[str, str]:
    text = payload if isinstance(payload, str) else repr(payload)
    match = _DATA_URL.match(text)
    return (text[match.end() :], match[1] or media_type) if match else (text, media_type)


def _head(payload: str) -> bytes:
    try:
        return base64.b64decode(payload[: _HEAD // 4 * 4], validate=True)
    except (binascii.Error, ValueError):
        return b""


def _size(head: bytes) -> tuple[int, int] | None:
    if head[:8] == b"\x89PNG\r\n\x1a\n" and len(head) >= 24:
        width, height = struct.unpack(">II", head[16:24])
        return width, height
    if head[:4] == b"GIF8" and len(head) >= 10:
        width, height = struct.unpack("<HH", head[6:10])
        return width, height
    return _jpeg_size(head) if head[:2] == b"\xff\xd8" else None


def _jpeg_size(head: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 <= len(head) and head[place] == 0xFF:
        marker, length = head[place + 1], struct.unpack(">H", head[place + 2 : place + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", head[place + 5 : place + 9])
            return width, height
        place += 2 + length
    return None


# -- Tool results


_TEXT = ("text", "input_text", "output_text")
_MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "document": "document",
    "file": "file",
    "input_file": "file",
    "input_audio": "audio",
    "computer_screenshot": "image",
}
_PAYLOAD = ("data", "url", "image_url", "file_data", "file_url", "file_id", "content", "text")


def result_text(content: Any, where: str) -> tuple[str, int]:
    """Return a result as the model reads it, media by a short name, and the tokens of the media."""
    if content is None or isinstance(content, str):
        return content or "", 0
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        raise wrong(where, "a string or a list", content)
    texts, tokens = [], 0
    for block in blocks_field({where: content}, where):
        text, weight = _block(block)
        texts.append(text)
        tokens += weight
    return "\n".join(texts), tokens


def _block(block: Json) -> tuple[str, int]:
    kind = block.get("type")
    if kind in _TEXT and isinstance(block.get("text"), str):
        return block["text"], 0
    if _is_shell(block):
        return _shell_text(block), 0
    if isinstance(kind, str) and kind in _MEDIA and not is_text_document(block):
        return _named(block)
    return shown(block)


def _named(block: Json) -> tuple[str, int]:
    part = media_part(_MEDIA[block["type"]], *payload_of(block))
    return part.text, part.media_tokens


def shown(value: Any) -> tuple[str, int]:
    """Return JSON data as the model reads it, media by a short name, and the tokens of the media.

    A document whose source is text counts as text.
    """
    plain, tokens = _without_media(value)
    return (plain if isinstance(plain, str) else dump(plain)), tokens


def _without_media(value: Any) -> tuple[Any, int]:
    if isinstance(value, list):
        each = [_without_media(one) for one in value]
        return [one for one, _ in each], sum(tokens for _, tokens in each)
    if not isinstance(value, dict):
        return value, 0
    if _holds_media(value):
        return _named(value)
    fields = {key: _without_media(one) for key, one in value.items()}
    return {key: one for key, (one, _) in fields.items()}, sum(t for _, t in fields.values())


def _holds_media(block: Json) -> bool:
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _MEDIA or is_text_document(block):
        return False
    return any(block.get(key) for key in ("source", "image_url", "url", "data", "file_data"))


def is_text_document(block: Json) -> bool:
    """Return whether a document block holds text or blocks instead of a file."""
    source = block.get("source")
    return isinstance(source, dict) and source.get("type") in ("text", "content")


def _is_shell(block: Json) -> bool:
    """Return whether a block is the output of a shell in the Responses format."""
    return isinstance(block.get("stdout"), str) and isinstance(block.get("stderr"), str)


def _shell_text(block: Json) -> str:
    outcome = block.get("outcome")
    done = outcome if isinstance(outcome, dict) else {}
    code = done.get("exit_code")
    ended = f"exit code {code}" if code else "timeout" if done.get("type") == "timeout" else ""
    return "\n".join(filter(None, (block["stdout"], block["stderr"], ended)))


def payload_of(block: Json) -> tuple[Any, tuple[()], str]:
    """Return the data, URL or id of a media block, an empty path, and its media type."""
    source = block.get("source") or block.get("image_url") or block.get("file") or block
    if not isinstance(source, dict):
        return source, (), ""
    media_type = source.get("media_type")
    found = (source[key] for key in _PAYLOAD if source.get(key))
    return next(found, dump(source)), (), media_type if isinstance(media_type, str) else ""


def merge_text(content: Any, text: str, *, keep_media: bool) -> Any:
    """Return the content of a result with `text` in place of all its text.

    A string stays a string. In a list the first text block takes the text and keeps its other
    fields and any cache mark; the rest is dropped, except media if `keep_media`. The output of a shell
    stays a shell's output, with its outcome.
    """
    if not isinstance(content, list):
        return text
    if content and all(map(_is_shell, content)):
        return [{**content[-1], "stdout": text, "stderr": ""}]
    media = [block for block in content if keep_media and block.get("type") in _MEDIA]
    if not text.strip():
        return media or text
    gone = [block for block in content if not keep_media or block.get("type") not in _MEDIA]
    first = next((block for block in gone if block.get("type") in _TEXT), None)
    mark = next((block["cache_control"] for block in gone if "cache_control" in block), None)
    block = {**(first or {"type": _text_type(content)}), "text": text}
    return [{**block, "cache_control": mark} if mark is not None else block, *media]


def _text_type(content: list[Json]) -> str:
    kinds = {str(block.get("type")) for block in content}
    return "input_text" if any(kind.startswith("input_") for kind in kinds) else "text"
