"""Policies: when a router forwards a document, and which annotations it adds.

§3 of the paper (Chan, Ni: Efficient XML Data Dissemination with Piggybacking, SIGMOD 2007). `ES` forwards as soon as a
link has a match and skips the link's other subscriptions; `L` reads the document to its end first. Either may add
annotations: `+s` bindings of subscriptions that match, `+d` the last places of data patterns, `-s` subscriptions that
don't match, `-d` data patterns that don't occur, and `+t` the document's structure (`structure_encoder.py`).

    ES    ES+s    ES+sd    L    L-sd    L+s-sd    L+sdt-sd    adaptive

`adaptive` forwards a document whose first match comes early as `ES`, and any other as `L+s-sd` (§6.2); its threshold is
a fraction of the document's bytes, `adaptive(0.4)`.

Invariant: a policy prints in canonical order; policies with the same meaning are equal.
"""

import re
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal

Forwarding = Literal["ES", "L", "adaptive"]

POSITIVE, NEGATIVE = "sdt", "sd"
# Up to which part of a document a first match counts as early. Measured: see docs/guides/routing.md.
EARLY = 0.85

_POLICY = re.compile(r"(?P<forwarding>ES|L)(?P<sets>(?:[+-][a-z]+)*)")
_ADAPTIVE = re.compile(r"adaptive(?:\((?P<early>[0-9.]+)\))?")
_SET = re.compile(r"([+-])([a-z]+)")


@dataclass(frozen=True, slots=True)
class Policy:
    """When to forward (`forwarding`), and the annotations to add, each set as letters in canonical order.

    >>> policy = pathcast.routing.Policy.read("L-ds+s")
    >>> str(policy), policy.forwarding
    ('L+s-sd', 'L')
    """

    forwarding: Forwarding
    positive: str = ""
    negative: str = ""
    early: float | None = None

    def __post_init__(self) -> None:
        adaptive, early = self.forwarding == "adaptive", self.early
        if (
            self.forwarding not in ("ES", "L", "adaptive")
            or self.positive not in _sets(POSITIVE)
            or self.negative not in _sets(NEGATIVE if self.forwarding != "ES" else "")
            or adaptive != (isinstance(early, int | float) and 0.0 <= early <= 1.0)
            or (not adaptive and early is not None)
        ):
            raise ValueError(
                f"invalid policy: forwarding {self.forwarding!r}, annotations +{self.positive} -{self.negative}, "
                f"early {early!r}; create policies from text, such as Policy.read('L+s-sd')"
            )

    @property
    def tells(self) -> bool:
        """Whether the policy adds annotations about matches or occurrences."""
        return bool(self.negative or self.positive.strip("t"))

    @property
    def in_batches(self) -> bool:
        """Whether routers can process many documents at once: they forward late, without structure annotations."""
        return self.forwarding == "L" and "t" not in self.positive

    def __str__(self) -> str:
        if self.forwarding == "adaptive":
            return "adaptive" if self.early == EARLY else f"adaptive({self.early:g})"
        positive = f"+{self.positive}" if self.positive else ""
        return self.forwarding + positive + (f"-{self.negative}" if self.negative else "")

    @classmethod
    def read(cls, text: "str | Policy") -> "Policy":
        """The policy for a text such as `L+s-sd`; `ValueError` with the reason if it is invalid."""
        if isinstance(text, Policy):
            return text
        if not isinstance(text, str):
            raise TypeError(f"policy must be a string such as 'adaptive' or 'L+s-sd', or a Policy, got {text!r}")
        adaptive = _ADAPTIVE.fullmatch(text)
        if adaptive:
            return _adaptive(text, adaptive["early"])
        found = _POLICY.fullmatch(text)
        if not found:
            raise ValueError(
                f"invalid policy '{text}': use 'ES', 'L' or 'adaptive'; 'ES' and 'L' take annotations +s +d +t, "
                "and 'L' also -s -d, as in 'L+s-sd'"
            )
        letters = {"+": "", "-": ""}
        for sign, some in _SET.findall(found["sets"]):
            letters[sign] += some
        positive, negative = _ordered(text, "+", letters["+"]), _ordered(text, "-", letters["-"])
        if found["forwarding"] == "ES":
            if negative:
                raise ValueError(
                    f"invalid policy '{text}': 'ES' does not support negative annotations, because it forwards a "
                    "document before reading all of it; use 'L' or 'adaptive'"
                )
            return cls("ES", positive)
        return cls("L", positive, negative)


def _adaptive(text: str, early: str | None) -> Policy:
    try:
        threshold = EARLY if early is None else float(early)
    except ValueError:
        threshold = -1.0
    if not 0.0 <= threshold <= 1.0:
        raise ValueError(f"invalid policy '{text}': the threshold must be from 0 to 1, as in 'adaptive(0.5)'")
    return Policy("adaptive", "s", "sd", threshold)


@cache
def _sets(letters: str) -> frozenset[str]:
    """All sets of some letters, in their order."""
    chosen = (some for count in range(len(letters) + 1) for some in combinations(letters, count))
    return frozenset(map("".join, chosen))


def _ordered(text: str, sign: str, letters: str) -> str:
    allowed = POSITIVE if sign == "+" else NEGATIVE
    for letter in letters:
        if letter not in allowed:
            raise ValueError(
                f"invalid policy '{text}': unknown annotation '{sign}{letter}'; use "
                + " ".join(f"{sign}{each}" for each in allowed)
            )
        if letters.count(letter) > 1:
            raise ValueError(f"invalid policy '{text}': duplicate annotation '{sign}{letter}'; give it once")
    return "".join(letter for letter in allowed if letter in letters)
