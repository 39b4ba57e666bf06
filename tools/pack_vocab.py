"""Pack tiktoken rank files into the vocabularies that ship in `src/ctxgc/tokens/vocab`.

Usage: python tools/pack_vocab.py RANKS.tiktoken [RANKS.tiktoken ...]

A rank file has one `base64(token) rank` line per token. It is recognised by its SHA-256, so its name does
not matter. Packed form: zlib over one length byte per token, in rank order, then all tokens without gaps.
The printed digests belong into `ctxgc.tokens.exact.VOCABULARIES`.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import zlib
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "src" / "ctxgc" / "tokens" / "vocab"
RANK_FILES = {
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": "o200k_base",
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": "cl100k_base",
}


def read_tokens(data: bytes) -> list[bytes]:
    """Return the tokens of a rank file in rank order; ranks must run from 0 without gaps."""
    pairs = (line.split() for line in data.splitlines() if line)
    ranks = {int(rank): base64.b64decode(token) for token, rank in pairs}
    return [ranks[rank] for rank in range(len(ranks))]


def pack(tokens: list[bytes]) -> tuple[bytes, bytes]:
    """Return the plain and the compressed form."""
    plain = bytes(map(len, tokens)) + b"".join(tokens)
    return plain, zlib.compress(plain, 9)


def main(paths: list[str]) -> int:
    """Pack each rank file; refuse one whose digest is not known."""
    for path in map(Path, paths):
        data = path.read_bytes()
        name = RANK_FILES.get(hashlib.sha256(data).hexdigest())
        if name is None:
            sys.stderr.write(
                f"{path}: not a rank file that this tool knows (its SHA-256 differs)\n"
            )
            return 1
        tokens = read_tokens(data)
        plain, packed = pack(tokens)
        (TARGET / f"{name}.bin").write_bytes(packed)
        digests = (hashlib.sha256(form).hexdigest() for form in (packed, plain))
        sys.stdout.write(" ".join([name, str(len(tokens)), *digests]) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
