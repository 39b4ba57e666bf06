"""The receipt of an installation: what each file was before, so that uninstalling leaves no trace."""

from __future__ import annotations

import base64
import binascii
from hashlib import sha256
from pathlib import Path

import msgspec

from ctxgc.errors import ConfigError
from ctxgc.stores.files import remove, write_atomic

FOLDER = "installs"


class FileReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """One file: its bytes before (None when it was not there), and the digest of what was written."""

    path: str
    before: str | None
    after: str

    @property
    def bytes_before(self) -> bytes | None:
        """What the file held before the installation."""
        return None if self.before is None else base64.b64decode(self.before)


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """An installation: the agent, its files, and the directories that were made for it."""

    agent: str
    store: str | None = None
    files: list[FileReceipt] = []
    directories: list[str] = []

    def file(self, path: Path) -> FileReceipt | None:
        """Return the receipt of a file."""
        return next((each for each in self.files if each.path == str(path)), None)


def digest(data: bytes) -> str:
    """Return what tells whether a file is still what was written."""
    return sha256(data).hexdigest()


def packed(data: bytes | None) -> str | None:
    """Return bytes as a receipt holds them."""
    return None if data is None else base64.b64encode(data).decode()


def receipt_path(home: Path, agent: str) -> Path:
    """Return where the receipt of an agent's installation lies."""
    return home / FOLDER / f"{agent}.json"


def read_receipt(home: Path, agent: str) -> Receipt | None:
    """Return the receipt of an installation; None when there is none.

    Raises:
        ConfigError: it is damaged.
    """
    path = receipt_path(home, agent)
    try:
        receipt = msgspec.json.decode(path.read_bytes(), type=Receipt)
        for file in receipt.files:
            _ = file.bytes_before
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.MsgspecError, binascii.Error, ValueError) as error:
        raise ConfigError(
            f"the receipt {path} cannot be read: {error}",
            hint="remove it; uninstalling then takes out only our own entries",
            path=str(path),
        ) from None
    return receipt


def write_receipt(home: Path, receipt: Receipt) -> None:
    """Write a receipt, durably."""
    data = msgspec.json.format(msgspec.json.encode(receipt), indent=2)
    write_atomic(receipt_path(home, receipt.agent), data)


def drop_receipt(home: Path, agent: str) -> None:
    """Remove a receipt."""
    remove(receipt_path(home, agent))


def installed_agents(home: Path) -> list[str]:
    """Return the agents with a receipt in a folder of ours."""
    return sorted(path.stem for path in (home / FOLDER).glob("*.json"))
