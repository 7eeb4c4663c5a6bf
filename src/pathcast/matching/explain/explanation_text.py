"""An explanation as lines of text: a mark, the step or condition, and the result, with parts indented below.

Each line comes with its tone, so that a terminal can colour it.
"""

from collections.abc import Iterator
from typing import Literal

from .explanation import Explanation, Finding, Place
from .step_and_condition_text import quoted

Tone = Literal["match", "miss", "plain", "yes", "no"]

_MARKS = {True: "✓", False: "✗"}


def lines(explanation: Explanation) -> Iterator[tuple[str, Tone]]:
    """The text, line by line."""
    owner = f" ({_printable(explanation.subscriber)})" if explanation.subscriber else ""
    verb = "matches" if explanation.matches else "does not match"
    yield (
        f"subscription {explanation.id}{owner} {verb}: {_printable(explanation.xpath)}",
        "match" if explanation.matches else "miss",
    )
    if explanation.pattern != explanation.xpath:
        yield f"  read as {_printable(explanation.pattern)}", "plain"
    if not explanation.steps:
        yield "  every document matches it", "yes"
    for step in explanation.steps:
        yield from _finding(step, 1)
    if not explanation.matches:
        yield f"nearest miss: {_printable(explanation.nearest)}", "miss"
    if explanation.cost:
        yield f"cost: {explanation.cost}", "plain"


def _finding(finding: Finding, depth: int) -> Iterator[tuple[str, Tone]]:
    tone: Tone = "yes" if finding.holds else "no"
    text = finding.text if finding.kind == "step" else f"[{finding.text}]"
    said = _said(finding)
    yield _printable(f"{'  ' * depth}{_MARKS[finding.holds]} {text}{'  ' if said else ''}{said}"), tone
    if finding.elsewhere is not None:
        yield _printable(f"{'  ' * (depth + 1)}{finding.elsewhere}"), tone
    for part in finding.parts:
        yield from _finding(part, depth + 1)


def _said(finding: Finding) -> str:
    """The reason of a miss with its nearest place; for a miss that a part decides, how many nodes were tried."""
    if not finding.places:
        return finding.reason
    if finding.reason:
        return f"{finding.reason}: {finding.places[0]}"
    if not finding.holds:
        return f"{finding.count:,} tried" if finding.count > 1 else str(finding.places[0])
    left = finding.count - len(finding.places)
    return "; ".join(map(_place, finding.places)) + (f"; {left:,} more" if left > 0 else "")


def _place(place: Place) -> str:
    return str(place) if place.value is None else f"{quoted(place.value)} at {place}"


def _printable(text: str) -> str:
    """Text without control characters for a terminal."""
    return "".join(character if character.isprintable() else "·" for character in text)
