"""Credentials of NATS for tests: an operator who trusts an account, which has a user with a `.creds` file."""

import json
import os
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import nkeys  # type: ignore[import-untyped]

_UNLIMITED = {"subs": -1, "data": -1, "payload": -1}
_ACCOUNT: dict[str, Any] = {"imports": -1, "exports": -1, "conn": -1, "leaf": -1, "wildcards": True, **_UNLIMITED}
_JETSTREAM = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}


def _pair(kind: int) -> Any:
    return nkeys.from_seed(nkeys.encode_seed(os.urandom(32), kind))


def _public(pair: Any) -> str:
    return str(pair.public_key.decode())


def _token(issuer: Any, subject: Any, nats: dict[str, Any]) -> str:
    """A signed statement of the issuer about the subject."""
    claims = {"jti": os.urandom(8).hex(), "iat": 0, "iss": _public(issuer), "sub": _public(subject), "name": "test"}
    head, body = (
        json.dumps(each).encode() for each in ({"typ": "JWT", "alg": "ed25519-nkey"}, {**claims, "nats": nats})
    )
    text = f"{_text(head)}.{_text(body)}"
    return f"{text}.{_text(issuer.sign(text.encode()))}"


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def credentials_in(folder: Path) -> tuple[Path, str]:
    """A `.creds` file, and the configuration of a server that accepts it and nobody without it."""
    operator, system = _pair(nkeys.PREFIX_BYTE_OPERATOR), _pair(nkeys.PREFIX_BYTE_ACCOUNT)
    account, user = _pair(nkeys.PREFIX_BYTE_ACCOUNT), _pair(nkeys.PREFIX_BYTE_USER)
    accounts = {
        _public(system): _token(operator, system, {"type": "account", "version": 2, "limits": _ACCOUNT}),
        _public(account): _token(operator, account, {"type": "account", "version": 2, "limits": _ACCOUNT | _JETSTREAM}),
    }
    trusted = _token(operator, operator, {"type": "operator", "version": 2, "system_account": _public(system)})
    signed = _token(account, user, {"type": "user", "version": 2, **_UNLIMITED})
    file = folder / "broker.creds"
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{signed}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed.decode()}\n------END USER NKEY SEED------\n",
        encoding="utf-8",
    )
    preloaded = "\n".join(f"{key}: {token}" for key, token in accounts.items())
    return file, (
        f"operator: {trusted}\nsystem_account: {_public(system)}\nresolver: MEMORY\n"
        f"resolver_preload {{\n{preloaded}\n}}\n"
    )
