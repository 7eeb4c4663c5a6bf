"""An access token: 256 random bits that are shown once, and a hash of them that is kept.

    pathcast_ID_SECRET      ID finds the record of the token; it is public. SECRET has 256 random bits

The hash is SHA-256 of the whole text. A slow hash, as for passwords, would add nothing: nobody guesses 256 random bits.
"""

import hashlib
import hmac
import re
import secrets
from datetime import datetime
from typing import Final, NamedTuple

from msgspec import Struct

_TEXT: Final = re.compile(r"pathcast_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NO_HASH: Final = "0" * 64


class TokenRecord(Struct, frozen=True, omit_defaults=True):
    """What is kept of a token."""

    id: str
    hash: str
    tenant: str
    name: str
    scopes: tuple[str, ...]
    created: datetime
    expires: datetime | None = None

    def valid_at(self, now: datetime) -> bool:
        """Whether the token has not expired."""
        return self.expires is None or now < self.expires


class NewToken(NamedTuple):
    """The text of a new token, and the id and hash to keep."""

    text: str
    id: str
    hash: str


def new_token() -> NewToken:
    """A random token."""
    id = secrets.token_hex(6)
    text = f"pathcast_{id}_{secrets.token_urlsafe(32)}"
    return NewToken(text, id, _hash(text))


def id_of(text: str) -> str | None:
    """The id in the text of a token; None if the text is not a token."""
    found = _TEXT.fullmatch(text)
    return None if found is None else found[1]


def is_hash_of(record: TokenRecord | None, text: str) -> bool:
    """Whether a record is that of a token; the time does not depend on where the hashes differ."""
    same = hmac.compare_digest(_hash(text), _NO_HASH if record is None else record.hash)
    return same and record is not None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
