"""Addresses of sinks: which URLs may be sinks, and which machine a request really goes to.

    URL ──checked──▶ name ──resolved──▶ addresses ──only public ones──▶ one address, to which the connection is made

The name is resolved for each connection, and the connection goes to the address that was checked: a name that resolves
to another address a moment later changes nothing. The certificate is still that of the name.

Invariant: unless private addresses are allowed, no connection goes to an address that is not public. An IPv6 address
that contains an IPv4 address (mapped, 6to4, Teredo, NAT64) is not public, whatever it contains.
"""

import ipaddress
import socket
from typing import Final

import httpx

from pathcast.errors import PathcastError

LENGTH: Final = 2_048
_NAT64: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48")))
# IPv4-compatible addresses: deprecated, and some systems send to the address that they contain.
_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")


class SinkError(PathcastError):
    """A URL that cannot be a sink, or whose name leads nowhere that is allowed."""


def checked_sink(text: str, *, allow_private: bool) -> httpx.URL:
    """The URL of a sink."""
    wanted = ("http", "https") if allow_private else ("https",)
    if len(text) > LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        raise SinkError(f"sink must be a URL of at most {LENGTH:,} ASCII characters, got {text[:100]!r}")
    try:
        url = httpx.URL(text)
        port = url.port
    except (httpx.InvalidURL, ValueError):
        raise SinkError(f"sink {text[:100]!r} is not a URL; give a URL such as https://example.org/hook") from None
    if url.scheme not in wanted or not url.host:
        raise SinkError(f"sink must begin with {' or '.join(f'{each}://' for each in wanted)}, got {text[:100]!r}")
    if url.userinfo or url.fragment:
        raise SinkError("sink must not contain a user, password or fragment; put a token into its path or query")
    if port is not None and not 1 <= port <= 65_535:
        raise SinkError(f"the port of a sink must be from 1 to 65535, got {port}")
    try:
        address = ipaddress.ip_address(url.host)
    except ValueError:
        return url
    if not allow_private and not is_public(address):
        raise SinkError(
            f"sink address {url.host} is not public; use a public host, or ask the operator to set "
            "webhooks.allow_private"
        )
    return url


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is that of one machine of the public internet."""
    if not address.is_global or address.is_multicast or address.is_reserved or address.is_unspecified:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    if address.ipv4_mapped or address.sixtofour or address.teredo or address.is_site_local or address.scope_id:
        return False
    return address not in _COMPATIBLE and not any(address in network for network in _NAT64)


def resolved(host: str, port: int, *, allow_private: bool) -> str:
    """An address of a name that a connection may go to. It asks the system's resolver, and waits for it."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise SinkError(f"cannot resolve sink host {host}; correct the name, or its DNS entry") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for text in addresses:
        if allow_private or is_public(ipaddress.ip_address(text)):
            return text
    raise SinkError(
        f"sink host {host} has no public IP address; use a public host, or ask the operator to set "
        "webhooks.allow_private"
    )
