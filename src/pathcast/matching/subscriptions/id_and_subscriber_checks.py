"""Checks of ids, subscriber names and namespaces; invalid values are rejected with a reason."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from pathcast.errors import LimitError
from pathcast.patterns import Namespaces

from .subscription_files import LARGEST_ID

# Ids of subscriptions, as a caller passes them.
Ids = Sequence[int] | npt.NDArray[np.integer[Any]]

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_text(value: object) -> bool:
    """Whether a value is a non-empty str that can be encoded as UTF-8."""
    return isinstance(value, str) and value != "" and not _SURROGATE.search(value)


def check_subscriber(name: object) -> None:
    """Reject a value that is neither a name nor None."""
    if name is not None and not is_text(name):
        raise ValueError(f"subscriber must be a non-empty str without surrogates, or None, got {name!r}")


def checked_subscribers(subscribers: Sequence[str | None] | None, count: int) -> list[str | None] | None:
    """Names, one per expression."""
    if subscribers is None:
        return None
    if isinstance(subscribers, str):
        raise TypeError(f"subscribers must be a list with one name per expression, got the str {subscribers!r:.60}")
    owners = list(subscribers)
    if len(owners) != count:
        raise ValueError(f"got {len(owners)} subscribers for {count} expressions; give one subscriber per expression")
    try:
        distinct: Iterable[str | None] = set(owners)
    except TypeError:  # an unhashable value is not a name either
        distinct = owners
    for owner in distinct:
        check_subscriber(owner)
    return owners


def checked_id(number: object) -> int:
    """A valid id."""
    if isinstance(number, bool) or not isinstance(number, Integral) or not 0 < int(number) <= LARGEST_ID:
        raise ValueError(f"id must be a whole number from 1 to {LARGEST_ID:,}, got {number!r}")
    return int(number)


def check_count(name: str, number: object) -> None:
    """Reject a value that is not a whole number of at least 1."""
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}")


def checked_ids(ids: Ids, count: int) -> list[int]:
    """Distinct ids, one per expression."""
    if len(ids) != count:
        raise ValueError(f"got {len(ids)} ids for {count} expressions; give one id per expression")
    numbers = [checked_id(number) for number in ids]
    if len(set(numbers)) != count:
        twice = Counter(numbers).most_common(1)[0][0]
        raise ValueError(f"id {twice} is given twice; give each subscription its own id")
    return numbers


def check_next(next_id: int, count: int) -> int:
    """The next id, if `count` ids are left."""
    if next_id + count - 1 > LARGEST_ID:
        raise LimitError(
            f"the next id would exceed {LARGEST_ID:,}; give unused ids yourself: add(…, id=…) or add_many(…, ids=…)"
        )
    return next_id


def check_namespaces(namespaces: Namespaces) -> None:
    """Reject a value that is not a mapping from prefix to URI, "ignore" or None."""
    if namespaces is None or namespaces == "ignore":
        return
    if not isinstance(namespaces, Mapping):
        raise TypeError(f"namespaces must be a mapping from prefix to URI, 'ignore' or None, got {namespaces!r}")
    for prefix, uri in namespaces.items():
        if prefix == "":
            raise ValueError(
                "namespaces must not contain the prefix '', because XPath 1.0 has no default namespace; give the "
                "namespace a prefix, and use that prefix in the expressions"
            )
        if not (is_text(prefix) and is_text(uri)):
            raise TypeError(f"namespaces must map non-empty prefixes to non-empty URIs, got {prefix!r}: {uri!r}")
