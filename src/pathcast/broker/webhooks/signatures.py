"""Signatures of webhooks, as Standard Webhooks defines them.

    webhook-id         the same for every attempt to send one delivery
    webhook-timestamp  seconds since 1970, of this attempt
    webhook-signature  v1,BASE64(HMAC-SHA256(key, id "." timestamp "." body))

The key is what follows `whsec_` in the secret, decoded from Base64.
"""

import base64
import hashlib
import hmac
from typing import Final

PREFIX: Final = "whsec_"


def secret_text(key: bytes) -> str:
    """A key as its owner gets to see it."""
    return PREFIX + base64.b64encode(key).decode()


def signature(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    digest = hmac.digest(key, b"%s.%d.%s" % (id.encode(), timestamp, body), hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def signed_headers(secret: str, id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that a receiver verifies a body by."""
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(secret, id, timestamp, body),
    }
