"""The tokens file: hashes of tokens, with tenant, name, scopes and expiry, in JSON.

`pathcast token` writes the file, a running server reads it: a change replaces the file by a rename, and the server
looks for a changed file at most once per second. The file has mode 600; a file open to others is rejected,
since everyone who can write to it has access.

A file that is missing or damaged gives nobody access: the server answers 503 until the file is repaired.
"""

import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, json

from pathcast.errors import PathcastError
from pathcast.store import flush

from .scopes import checked_scopes
from .token import TokenRecord, id_of, is_hash_of, new_token

# Seconds between two looks at the file.
_LOOK: Final = 1.0
_FORMAT: Final = 1
_LOGGER: Final = logging.getLogger(__name__)


class TokenFileError(PathcastError):
    """The tokens file cannot be read or written."""


class _Format(Struct):
    format: int


class _Content(Struct):
    format: int
    tokens: list[TokenRecord]


def read_tokens(path: Path) -> list[TokenRecord]:
    """The tokens of a file; `TokenFileError` if it cannot be trusted or read."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise TokenFileError(f"the tokens file {path} is open to other users; run chmod 600 {path}")
            text = file.read()
        version = json.decode(text, type=_Format).format
        if version != _FORMAT:
            raise TokenFileError(
                f"the tokens file {path} has format {version}, but this version of Pathcast reads format {_FORMAT}; "
                "update Pathcast"
            )
        content = json.decode(text, type=_Content)
    except OSError as error:
        raise TokenFileError(
            f"the tokens file {path} cannot be read: {error.strerror}; create the file with pathcast token add"
        ) from None
    except (DecodeError, ValidationError, UnicodeDecodeError) as error:
        raise TokenFileError(f"the tokens file {path} is damaged: {error}; restore the file from a backup") from None
    return content.tokens


def add_token(
    path: Path, tenant: str, name: str, scopes: Sequence[str], expires: datetime | None = None
) -> tuple[str, TokenRecord]:
    """Add a token to a file, which is created if it is missing; returns the token's text, which is kept nowhere."""
    new = new_token()
    record = TokenRecord(new.id, new.hash, tenant, name, checked_scopes(scopes), datetime.now(UTC), expires)
    with _changing(path):
        tokens = read_tokens(path) if path.exists() else []
        _write(path, [*tokens, record])
    return new.text, record


def revoke_tokens(path: Path, wanted: str) -> list[TokenRecord]:
    """Remove the token with an id, or all tokens with a name; returns what was removed."""
    with _changing(path):
        tokens = read_tokens(path)
        removed = [each for each in tokens if wanted in (each.id, each.name)]
        if removed:
            _write(path, [each for each in tokens if each not in removed])
    return removed


@contextmanager
def _changing(path: Path) -> Iterator[None]:
    """One process changes the file at a time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TokenFileError(
            f"the tokens file {path} cannot be written: {error.strerror}; check the path and the permissions"
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _write(path: Path, tokens: list[TokenRecord]) -> None:
    """Replace the file by a rename; a crash leaves the old file or the new one."""
    text = json.format(json.encode(_Content(_FORMAT, tokens)), indent=2) + b"\n"
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(handle, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        flush(path.parent)
    except OSError as error:
        raise TokenFileError(
            f"the tokens file {path} cannot be written: {error.strerror}; check the path and the permissions"
        ) from None


class Tokens:
    """The tokens of a file, as of now."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._by_id = {each.id: each for each in read_tokens(path)}
        self._seen = self._stamp()
        self._looked = clock()
        self._error: TokenFileError | None = None

    def find(self, text: str) -> TokenRecord | None:
        """The record of a token; None if it is unknown, revoked or expired."""
        self._look()
        record = self._by_id.get(id_of(text) or "")
        if not is_hash_of(record, text) or record is None or not record.valid_at(datetime.now(UTC)):
            return None
        return record

    def is_valid(self, record: TokenRecord) -> bool:
        """Whether a token that was found before is still valid."""
        self._look()
        return self._by_id.get(record.id) == record and record.valid_at(datetime.now(UTC))

    @property
    def error(self) -> TokenFileError | None:
        """Why nobody has access, as long as the file cannot be read."""
        return self._error

    def _look(self) -> None:
        now = self._clock()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._by_id, self._error = {each.id: each for each in read_tokens(self._path)}, None
        except TokenFileError as error:
            self._by_id, self._error = {}, error
            _LOGGER.error("%s", error.reason)  # noqa: TRY400 - the reason is all there is to say

    def _stamp(self) -> tuple[int, ...]:
        """What changes when the file does."""
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode, found.st_ctime_ns
