"""The output of a tool: plain text, or a list of text and media blocks, in every format."""

from __future__ import annotations

from typing import Any

from ctxgc.wire.fields import Json, blocks_field, wrong
from ctxgc.wire.json_text import dump
from ctxgc.wire.media import media_part

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
    """Return what the model reads of a result, media by a short name, and the tokens of the media."""
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

    A document that is given as text is text.
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
    """Tell whether a document block holds its text, or blocks, instead of a file."""
    source = block.get("source")
    return isinstance(source, dict) and source.get("type") in ("text", "content")


def _is_shell(block: Json) -> bool:
    """Tell whether a block is what a shell of the Responses format printed."""
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
    fields and any cache mark; the rest goes, except media if `keep_media`. What a shell printed stays
    the output of one, with its outcome.
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
