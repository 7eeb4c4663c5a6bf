"""The settings in force for a feed: its own, and those of all feeds for what it leaves open.

    sequences     1 ──────────── 70 ──────────────── 200 ─────────▶
    settings      of all feeds   feed: depth = 50    all: size = 1 MiB

A setting is in force from its record on. The sequencer processes a record that changes settings as a batch of its own,
so each document is read within the limits in force at its sequence. The outcome is in the document's record: it is
accepted or has an `error`, and no later setting changes that. So a reader of the log (a rebuild, a search, a
program of the operator) needs no limits: documents without an error are read and matched whatever they cost.
"""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Final

from pathcast.documents import Limits
from pathcast.log import LogError

from .broker_records import SEMANTICS, FeedRecord, Meta, SettingsRecord

# For documents of the log that were accepted.
UNLIMITED: Final = Limits(**dict.fromkeys((field.name for field in fields(Limits)), 1 << 60))

_KNOWN: Final = frozenset(field.name for field in fields(Limits))


def sparing(limits: Limits) -> Limits:
    """The limits with which a broker matches: no subscription can make a document an error.

    Subscribers share a feed. An expression that takes too many steps on a document matches nothing there, alone, and
    does so whenever the document is matched again.
    """
    return replace(limits, evaluation=UNLIMITED.evaluation)


def changes_settings(meta: Meta) -> bool:
    """Whether documents before and after a record are read in different ways."""
    return isinstance(meta, FeedRecord | SettingsRecord)


def limits_of(settings: SettingsRecord, feed: FeedRecord | None) -> Limits:
    """The limits in force for a feed."""
    given: Mapping[str, int] = settings.limits if feed is None else {**settings.limits, **feed.limits}
    return Limits(**{name: value for name, value in given.items() if name in _KNOWN})


def new_settings(limits: Limits, before: SettingsRecord) -> SettingsRecord | None:
    """The record to append at the start of a broker with these limits; None if they are in force already."""
    if before.semantics > SEMANTICS:
        raise LogError(
            f"the log needs version {before.semantics} of the matching semantics, but this version of "
            f"Pathcast supports at most version {SEMANTICS}; update Pathcast"
        )
    wanted = SettingsRecord(asdict(limits))
    return None if wanted == before else wanted
