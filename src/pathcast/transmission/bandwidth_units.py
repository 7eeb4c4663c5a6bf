"""Bandwidth and latency as text: "10MB/s", "100Mbps", "0ms"; numbers are bytes per second and seconds.

`B` means bytes, `b` means bits, as is usual for networks; `k`, `M`, `G`, `T` are powers of 1,000, `Ki`, `Mi`, `Gi`,
`Ti` powers of 1,024. Any other text raises a `TopologyError` with the missing part and an example.
"""

import math
import re
from typing import Any

from pathcast.errors import TopologyError

_SCALES = {"": 1.0} | {
    letter + middle: base**power
    for middle, base in (("", 1000.0), ("i", 1024.0))
    for power, letter in enumerate("kMGT", 1)
}
_SCALES |= {"K": 1000.0, "Ki": 1024.0}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}
_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)"
_BANDWIDTH = re.compile(rf"{_NUMBER}\s*([kKMGT]i?)?\s*(B|b|bits?|[Bb]ytes?)\s*(?:/\s*s(?:ec)?|ps)")
_RATELESS = re.compile(rf"{_NUMBER}\s*([kKMGT]i?)?\s*(?:B|b|bits?|[Bb]ytes?)?")
_LATENCY = re.compile(rf"{_NUMBER}\s*([a-zµμ]+)")
_UNLIMITED = {"unlimited", "infinite", "inf"}


def bandwidth(value: Any) -> float:
    """Bytes per second, more than 0; `inf` for unlimited bandwidth.

    >>> pathcast.transmission.bandwidth("10 MB/s"), pathcast.transmission.bandwidth(500)
    (10000000.0, 500.0)
    """
    if isinstance(value, str):
        return _written_bandwidth(value)
    number = _number("bandwidth", value, "bytes per second", '"10MB/s"')
    if not number > 0:
        raise TopologyError(f"bandwidth must be more than 0 bytes per second, got {value!r}")
    return number


def latency(value: Any) -> float:
    """Seconds, 0 or more.

    >>> pathcast.transmission.latency("20 ms")
    0.02
    """
    if isinstance(value, str):
        return _written_latency(value)
    number = _number("latency", value, "seconds", '"20ms"')
    if not 0 <= number < math.inf:
        raise TopologyError(f"latency must be finite and at least 0 seconds, got {value!r}")
    return number


def _number(what: str, value: Any, unit: str, example: str) -> float:
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TopologyError(f"{what} must be text such as {example} or a number of {unit}, got {value!r}")
    return float(value)


def _written_bandwidth(text: str) -> float:
    bare = text.strip()
    if bare.lower() in _UNLIMITED:
        return math.inf
    found = _BANDWIDTH.fullmatch(bare)
    if found is None:
        lacks = "the unit of time is missing" if _RATELESS.fullmatch(bare) else "expected a positive number and a unit"
        advice = 'write for example "10MB/s" (bytes), "100Mb/s" (bits) or "unlimited"'
        raise TopologyError(f'invalid bandwidth "{text}": {lacks}; {advice}')
    number, scale, unit = found.groups()
    value = float(number) * _SCALES[scale or ""] / (8.0 if unit[:1] == "b" and not unit.startswith("byte") else 1.0)
    if not 0 < value < math.inf:
        raise TopologyError(f'bandwidth must be finite and more than 0 bytes per second, got "{text}"')
    return value


def _written_latency(text: str) -> float:
    found = _LATENCY.fullmatch(text.strip())
    if found is None or found[2] not in _SECONDS:
        lacks = f"unknown unit '{found[2]}'" if found else "expected a number of at least 0 and a unit"
        advice = 'write for example "0ms", "20ms" or "1.5s" (units: ns, us, ms, s, min)'
        raise TopologyError(f'invalid latency "{text}": {lacks}; {advice}')
    value = float(found[1]) * _SECONDS[found[2]]
    if value == math.inf:
        raise TopologyError(f'latency must be finite, got "{text}"')
    return value


def shown_bytes(count: float) -> str:
    """`7.2 kB`: a number of bytes as text."""
    for scale, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.3g} B"


def shown_bandwidth(value: float) -> str:
    """`10 MB/s`: text that `bandwidth` reads."""
    return "unlimited" if math.isinf(value) else f"{shown_bytes(value)}/s"


def shown_seconds(value: float) -> str:
    """`20 ms`: text that `latency` reads."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns" if value else "0 s"
