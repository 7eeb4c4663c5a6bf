"""Events of a cloud's services, and subscriptions to them: random field patterns (field_patterns.py) and JSON events.

Each pattern fixes the source of events, by equality or by a prefix, and up to eight other fields; so an event matches
some forty of a hundred thousand patterns. Patterns are distinct.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

SOURCES, TYPES, REGIONS, KINDS, COUNTS = 200, 1_000, 20, 40, 100
STATES = ("running", "stopped", "pending", "failed", "idle")
# Draws in a row that repeat a pattern, after which there are no more distinct ones.
_PATIENCE = 10_000


def draw_patterns(count: int, seed: int) -> list[dict[str, Any]]:
    """`count` distinct patterns."""
    found: dict[str, dict[str, Any]] = {}
    random = Random(f"field patterns/{seed}")
    repeats = 0
    while len(found) < count:
        pattern = _pattern(random)
        text = json.dumps(pattern, sort_keys=True)
        repeats = repeats + 1 if text in found else 0
        if repeats > _PATIENCE:
            raise ValueError(f"only {len(found):,} distinct patterns exist, {count:,} were requested")
        found.setdefault(text, pattern)
    return list(found.values())


def draw_events(count: int, seed: int) -> list[dict[str, Any]]:
    """`count` events, with nine or ten leaves each."""
    random = Random(f"field events/{seed}")
    return [_event(random) for _ in range(count)]


def _event(random: Random) -> dict[str, Any]:
    detail: dict[str, Any] = {
        "state": random.choice(STATES),
        "instance": {"id": f"i-{random.randrange(2**32):08x}", "kind": f"m{random.randrange(KINDS)}"},
        "count": random.randrange(COUNTS),
        "spot": random.random() < 0.3,
    }
    if random.random() < 0.3:
        detail["error"] = f"E{random.randrange(500)} & more"
    return {
        "source": f"cloud.s{random.randrange(SOURCES)}",
        "detail-type": f"type-{random.randrange(TYPES)}",
        "region": f"region-{random.randrange(REGIONS)}",
        "account": f"{random.randrange(10**12):012}",
        "detail": detail,
    }


def _pattern(random: Random) -> dict[str, Any]:
    source = f"cloud.s{random.randrange(SOURCES)}"
    fields = dict(_some_fields(random))
    detail = dict(_some_details(random))
    return {
        "source": [source if random.random() < 0.9 else {"prefix": source}],
        **fields,
        **({"detail": detail} if detail else {}),
    }


def _some_fields(random: Random) -> Iterator[tuple[str, Any]]:
    if random.random() < 0.6:
        yield "detail-type", [f"type-{random.randrange(TYPES)}" for _ in range(random.choice((1, 1, 1, 2, 3)))]
    if random.random() < 0.3:
        yield "region", [f"region-{random.randrange(REGIONS)}"]


def _some_details(random: Random) -> Iterator[tuple[str, Any]]:
    if random.random() < 0.3:
        yield "state", [{"anything-but": random.sample(STATES, random.choice((1, 2)))}]
    if random.random() < 0.3:
        instance = {"id": [{"prefix": f"i-{random.randrange(256):02x}"}]}
        yield "instance", instance | ({"kind": [f"m{random.randrange(KINDS)}"]} if random.random() < 0.3 else {})
    if random.random() < 0.2:
        yield "count", [random.randrange(COUNTS)]
    if random.random() < 0.1:
        yield "spot", [random.random() < 0.5]
    if random.random() < 0.3:
        yield "error", [{"exists": random.random() < 0.5}]
