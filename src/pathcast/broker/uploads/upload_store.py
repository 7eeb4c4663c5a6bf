"""Uploads as files: durable once `put` returns, until a commit has published them or they expire.

    put ──▶ ID.new ──fsync, rename──▶ ID.upload ──take, read──▶ committed ──remove──▶ gone
                                          └── expire seconds ──▶ gone

A file is a line of JSON (whose upload it is, its checksum) and the body of the request as it came. Uploads are no
part of the log: what is lost with them was never published, and its publisher uploads it again.

Invariant: an upload that was put is read unchanged, or not at all. It belongs to the token that made it, and one commit
at a time has it.
Cost: one fsync per upload; memory for a few hundred bytes per upload.

Threads: any thread; a lock guards the table, not the files.
"""

import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from msgspec import DecodeError, Struct, ValidationError, json

from pathcast.errors import LimitError, PathcastError
from pathcast.log import LogFullError
from pathcast.store import flush

_SUFFIX: Final = ".upload"
_NAME: Final = re.compile(r"[0-9a-f]{32}\.upload")
_HEADER_BYTES: Final = 256 << 10


class UnknownUploadError(PathcastError):
    """There is no such upload, or not for this sender."""


class BusyUploadError(PathcastError):
    """Another commit has the upload."""


class Upload(Struct, frozen=True):
    """An upload: who made it and when (seconds since 1970), and what it holds."""

    tenant: str
    sender: str
    created: float
    feeds: tuple[str, ...]
    documents: int
    size: int
    checksum: int


class UploadStore:
    """The uploads in a folder, which is created with the first of them."""

    def __init__(
        self, folder: Path, *, expire: float, tenant_bytes: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._expire = expire
        self._tenant_bytes = tenant_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._uploads: dict[str, Upload] = {}
        self._busy: set[str] = set()
        self._bytes: dict[str, int] = {}  # per tenant, with uploads that are being written
        self._open()

    def _open(self) -> None:
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.iterdir()):
            if path.name.endswith(".new"):
                path.unlink(missing_ok=True)
            elif _NAME.fullmatch(path.name):
                with path.open("rb") as file:
                    found = _decoded(file.readline(_HEADER_BYTES))
                if found is None:  # it cannot be committed, and its publisher gets an error that says so
                    path.unlink(missing_ok=True)
                else:
                    self._uploads[path.stem] = found
                    self._bytes[found.tenant] = self._bytes.get(found.tenant, 0) + found.size

    @property
    def size(self) -> int:
        """Bytes of all uploads."""
        with self._lock:
            return sum(self._bytes.values())

    def put(self, tenant: str, sender: str, feeds: Iterable[str], documents: int, body: bytes) -> str:
        """Store an upload; returns its id. `LimitError` beyond the tenant's bytes, `LogFullError` on a full disk."""
        self.sweep()
        upload = Upload(tenant, sender, self._clock(), tuple(feeds), documents, len(body), crc32(body))
        with self._lock:
            held = self._bytes.get(tenant, 0)
            if held + upload.size > self._tenant_bytes:
                raise LimitError(
                    f"the tenant has uploads of {held:,} bytes, and {upload.size:,} more exceed "
                    f"{self._tenant_bytes:,}; commit batches, or delete uploads, first"
                )
            self._bytes[tenant] = held + upload.size
        id = uuid.uuid4().hex
        try:
            self._write(id, upload, body)
        except OSError as error:
            self._count(upload)
            raise LogFullError(
                f"cannot store the upload: {error.strerror}; check permissions and free disk space"
            ) from None
        with self._lock:
            self._uploads[id] = upload
        return id

    def _write(self, id: str, upload: Upload, body: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        new = self._folder / f"{id}.new"
        try:
            with new.open("wb") as file:
                file.write(json.encode(upload) + b"\n")
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path(id))
            flush(self._folder)
        except OSError:
            new.unlink(missing_ok=True)
            raise

    def take(self, ids: Sequence[str], tenant: str, sender: str) -> list[Upload]:
        """Uploads of a sender, for one commit, until `give_back` or `remove`."""
        self.sweep()
        with self._lock:
            found: list[Upload] = []
            for id in ids:
                upload = self._uploads.get(id)
                if upload is None or (upload.tenant, upload.sender) != (tenant, sender):
                    raise UnknownUploadError(
                        f"unknown upload {id[:64]!r}: it has expired, was committed or deleted, or belongs to "
                        "another token or broker; upload its documents again"
                    )
                if id in self._busy:
                    raise BusyUploadError(f"upload {id!r} is being committed; send the request again")
                found.append(upload)
            self._busy.update(ids)
            return found

    def give_back(self, ids: Iterable[str]) -> None:
        """End what `take` began."""
        with self._lock:
            self._busy.difference_update(ids)

    def read(self, id: str) -> bytes:
        """The body of an upload, as it came."""
        upload = self._uploads[id]
        try:
            with self._path(id).open("rb") as file:
                file.readline(_HEADER_BYTES)
                body = file.read()
        except OSError as error:
            raise UnknownUploadError(
                f"cannot read upload {id!r}: {error.strerror}; upload its documents again"
            ) from None
        if crc32(body) != upload.checksum:
            raise UnknownUploadError(f"upload {id!r} is damaged on the broker's disk; upload its documents again")
        return body

    def remove(self, ids: Iterable[str], tenant: str, sender: str) -> int:
        """Delete uploads of a sender; returns how many there were. Those of others stay."""
        removed = 0
        for id in ids:
            with self._lock:
                upload = self._uploads.get(id)
                if upload is None or (upload.tenant, upload.sender) != (tenant, sender):
                    continue
                del self._uploads[id]
                self._busy.discard(id)
            self._path(id).unlink(missing_ok=True)
            self._count(upload)
            removed += 1
        return removed

    def sweep(self) -> None:
        """Delete uploads that have expired, except those that are being committed."""
        now = self._clock()
        with self._lock:
            over = [
                (id, each)
                for id, each in self._uploads.items()
                if each.created + self._expire <= now and id not in self._busy
            ]
        for id, upload in over:
            self.remove([id], upload.tenant, upload.sender)

    def _count(self, upload: Upload) -> None:
        with self._lock:
            left = self._bytes[upload.tenant] - upload.size
            if left:
                self._bytes[upload.tenant] = left
            else:
                del self._bytes[upload.tenant]

    def _path(self, id: str) -> Path:
        return self._folder / f"{id}{_SUFFIX}"


def _decoded(line: bytes) -> Upload | None:
    try:
        return json.decode(line, type=Upload)
    except (DecodeError, ValidationError):
        return None
