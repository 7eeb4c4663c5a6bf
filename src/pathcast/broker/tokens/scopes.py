"""Scopes: what the bearer of a token may do.

publish:FEED     publish to a feed                 publish:*     to all feeds
read:FEED        read a feed's documents           read:*        of all feeds
subscribe:NAME   act as a subscriber               subscribe:*   as any subscriber of the tenant
administer       change feeds, tenants and guards, and read the log: the operator of the broker
*                all of these
"""

import re
from collections.abc import Iterable
from typing import Final

from pathcast.errors import PathcastError

ADMINISTER: Final = "administer"
EVERYTHING: Final = "*"
_KINDS: Final = frozenset({"publish", "read", "subscribe"})
# Names of feeds, subscriptions, subscribers and tenants: they stand in paths, so they have no slash and no colon.
NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.~@-]{0,127}")


def is_name(text: str) -> bool:
    """Whether a text can name a feed, subscription, subscriber or tenant."""
    return NAME.fullmatch(text) is not None


def checked_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """The scopes, each once; `PathcastError` for an unknown one."""
    found = tuple(dict.fromkeys(scopes))
    if not found:
        raise PathcastError("a token needs at least one scope, such as read:news or subscribe:ada")
    for scope in found:
        kind, _, name = scope.partition(":")
        if scope not in (ADMINISTER, EVERYTHING) and not (kind in _KINDS and (name == "*" or is_name(name))):
            raise PathcastError(
                f"unknown scope {scope[:60]!r}; use publish:FEED, read:FEED, subscribe:NAME, administer, or * for all"
            )
    return found


def names_of(kind: str, scopes: Iterable[str]) -> frozenset[str] | None:
    """The names that the scopes of a kind list; None for all names."""
    found: set[str] = set()
    for scope in scopes:
        if scope in (EVERYTHING, f"{kind}:*"):
            return None
        of, _, name = scope.partition(":")
        if of == kind and name:
            found.add(name)
    return frozenset(found)


def administers(scopes: Iterable[str]) -> bool:
    """Whether the scopes include administration."""
    return any(scope in (ADMINISTER, EVERYTHING) for scope in scopes)
