"""What may be an id, a subscriber's name, and a mapping of namespaces; anything else is refused with a reason."""

import re
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from pathcast.errors import LimitError
from pathcast.patterns import Namespaces

from .subscription_files import LARGEST_ID

# Numbers of subscriptions, as a caller gives them.
Ids = Sequence[int] | npt.NDArray[np.integer[Any]]

_SURROGATE = re.compile("[\ud800-\udfff]")


def is_text(value: object) -> bool:
    """Whether a value is a str that is not empty and can be written as UTF-8."""
    return isinstance(value, str) and value != "" and not _SURROGATE.search(value)


def check_subscriber(name: object) -> None:
    """Refuse what is neither a name nor None."""
    if name is not None and not is_text(name):
        raise ValueError(f"subscriber {name!r}: a name is a str that is not empty, or None")


def checked_subscribers(subscribers: Sequence[str | None] | None, count: int) -> list[str | None] | None:
    """Names, one for each expression."""
    if subscribers is None:
        return None
    if isinstance(subscribers, str):
        raise TypeError("subscribers is one name for each expression, not a single str")
    owners = list(subscribers)
    if len(owners) != count:
        raise ValueError(f"{count} expressions, but {len(owners)} subscribers")
    try:
        distinct: Iterable[str | None] = set(owners)
    except TypeError:  # what cannot be hashed is no name either
        distinct = owners
    for owner in distinct:
        check_subscriber(owner)
    return owners


def checked_id(number: object) -> int:
    """A number that may be an id."""
    if isinstance(number, bool) or not isinstance(number, Integral) or not 0 < int(number) <= LARGEST_ID:
        raise ValueError(f"id {number!r}: an id is a whole number from 1 to {LARGEST_ID:,}")
    return int(number)


def check_count(name: str, number: object) -> None:
    """Refuse what is no whole number from 1 up."""
    if isinstance(number, bool) or not isinstance(number, Integral) or int(number) < 1:
        raise ValueError(f"{name}={number!r}: must be a whole number from 1 up")


def checked_ids(ids: Ids, count: int) -> list[int]:
    """Ids, one for each expression, no two alike."""
    if len(ids) != count:
        raise ValueError(f"{count} expressions, but {len(ids)} ids")
    numbers = [checked_id(number) for number in ids]
    if len(set(numbers)) != count:
        raise ValueError("an id is given twice")
    return numbers


def check_next(next_id: int, count: int) -> int:
    """The next id, when so many are wanted."""
    if next_id + count - 1 > LARGEST_ID:
        raise LimitError(f"ids beyond {LARGEST_ID:,} do not exist; give free ones with ids=…")
    return next_id


def check_namespaces(namespaces: Namespaces) -> None:
    """Refuse what is no mapping from prefix to URI, nor "ignore", nor None."""
    if namespaces is None or namespaces == "ignore":
        return
    if not isinstance(namespaces, Mapping):
        raise TypeError(f"namespaces={namespaces!r}: must be a mapping from prefix to URI, 'ignore' or None")
    for prefix, uri in namespaces.items():
        if prefix == "":
            raise ValueError("namespaces: XPath 1.0 has no default namespace; give it a prefix and use that")
        if not (is_text(prefix) and is_text(uri)):
            raise TypeError(f"namespaces: {prefix!r} → {uri!r} is not a prefix and a URI")
