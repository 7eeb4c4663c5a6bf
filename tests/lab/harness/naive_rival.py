"""A rival for tests: a driver that keeps to the protocol, with the simplest matcher of field patterns.

Its argument makes it break the protocol or its answers in one way; see `FAULTS`. It imports nothing of ours: a rival
knows only the protocol.
"""

import json
import sys
import time
from typing import Any

FAULTS = ("misses", "invents", "repeats", "miscounts", "dies", "stalls", "rejects", "babbles", "deserts", "shortens")


def say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def holds(test: Any, event: Any, name: str) -> bool:
    value = event.get(name) if isinstance(event, dict) else None
    if isinstance(test, dict):
        return all(holds(below, value, field) for field, below in test.items())
    return any(fits(one, value) for one in test)


def fits(one: Any, value: Any) -> bool:
    if not isinstance(one, dict):
        return type(one) is type(value) and bool(one == value)
    if "exists" in one:
        return (value is not None) == bool(one["exists"])
    if "prefix" in one:
        return str(value or "").startswith(one["prefix"])
    return value is not None and value not in one["anything-but"]


def matched(patterns: list[Any], event: Any) -> list[int]:
    return [
        number
        for number, pattern in enumerate(patterns, 1)
        if all(holds(test, event, name) for name, test in pattern.items())
    ]


def spoiled(answers: list[list[int]], fault: str) -> list[list[int]]:
    """The answers with one mistake, in the last of them that has any."""
    last = max(number for number, answer in enumerate(answers) if answer)
    changed = {"misses": answers[last][1:], "invents": [*answers[last], 10**6], "repeats": answers[last] * 2}
    answers[last] = changed.get(fault, answers[last])
    return answers[:-1] if fault == "shortens" else answers


def main(fault: str) -> None:
    patterns, events = [], []
    for line in sys.stdin:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "pattern":
            patterns.append(json.loads(rest))
        elif word == "event":
            events.append(json.loads(rest))
        elif word == "build":
            if fault == "dies":
                sys.exit("out of memory: 3 patterns")
            if fault == "stalls":
                time.sleep(60)
            say({"rejects": "error no such field", "babbles": "welcome"}.get(fault, "ready"))
        elif word == "match":
            answers = spoiled([matched(patterns, event) for event in events], fault)
            if fault == "deserts":
                answers = [[]]
            say(*(" ".join(map(str, answer)) for answer in answers))
            if fault in {"deserts", "shortens"}:
                return
        elif word == "run":
            count = sum(len(matched(patterns, event)) for event in events) * int(rest)
            say(str(count + (fault == "miscounts")))


main(*(sys.argv[1:] or [""]))
