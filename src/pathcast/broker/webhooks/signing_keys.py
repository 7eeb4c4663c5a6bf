"""Signing keys: one secret per subscription, derived from a key file in the broker's data folder.

    key of a subscription = HMAC-SHA256(key file, [tenant, id, sequence at which it was created])

So nothing per subscription is stored, secrets are in no log or backup of the log, and a subscription that is deleted
and created again has a new secret. A user who can read the file can sign for every subscription: it has mode 600, and a
file that is open to others is rejected. Losing it gives every subscription another secret.
"""

import hashlib
import hmac
import os
import secrets
import threading
from pathlib import Path
from typing import Final

from msgspec import json

from pathcast.errors import PathcastError
from pathcast.store import flush

from .signatures import secret_text

FILE: Final = "webhook-signing.key"
_BYTES: Final = 32


class SigningKeyError(PathcastError):
    """The key file of webhooks cannot be read or written."""


class SigningKeys:
    """The secrets of subscriptions. The file is read, or made, when the first secret is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key: bytes | None = None
        self._lock = threading.Lock()

    def secret_of(self, tenant: str, id: str, created: int) -> str:
        """The secret of a subscription, as its owner gets to see it."""
        with self._lock:
            if self._key is None:
                self._key = self._read()
        return secret_text(hmac.digest(self._key, json.encode([tenant, id, created]), hashlib.sha256))

    def _read(self) -> bytes:
        try:
            try:
                return self._checked()
            except FileNotFoundError:
                self._create()
                return self._checked()
        except OSError as error:
            raise SigningKeyError(
                f"the webhook key file {self._path} cannot be used: {error.strerror}; check the path and the "
                "permissions"
            ) from None

    def _checked(self) -> bytes:
        with self._path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise SigningKeyError(
                    f"the webhook key file {self._path} is open to other users; run chmod 600 {self._path}"
                )
            key = file.read()
        if len(key) != _BYTES:
            raise SigningKeyError(
                f"the webhook key file {self._path} is damaged: expected {_BYTES} bytes, got {len(key)}; restore "
                "the file from a backup"
            )
        return key

    def _create(self) -> None:
        """Make the file, complete and durable before it has its name; if another made it first, that one counts."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_name(f".{self._path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(_BYTES))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(new, self._path)
            except FileExistsError:
                return
            flush(self._path.parent)
        finally:
            new.unlink()
