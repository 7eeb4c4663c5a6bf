"""Every case of the corpus gives the expected result with pattern and document at different routers, all at once."""

from collections import defaultdict
from functools import cache
from itertools import cycle

import pytest

from pathcast.routing import Overlay
from tests.corpus import Case, cases

POLICIES = {
    "early": (("ES", "yfilter"), ("ES+s", "xtrie"), ("adaptive(0.5)", "gpx-ap"), ("ES+st", "yfilter")),
    "late": (("L+s-sd", "xtrie"), ("L+sd-sd", "yfilter"), ("L+sdt-sd", "automaton"), ("L-sd", "gpx-ap")),
}


@pytest.mark.slow
@pytest.mark.parametrize(("forwarding", "keep"), [("early", 1.0), ("late", 0.25)])
def test_every_case_has_its_answer_across_an_overlay(forwarding: str, keep: float) -> None:
    wrong = []
    for group, overlay in _overlays():
        overlay.advertise(keep)
        for case, (policy, engine) in zip(group, cycle(POLICIES[forwarding]), strict=False):
            got = {each.subscriber for each in overlay.publish(case.document, policy, engine).deliveries}
            if (case.id in got) is not case.expected:
                wrong.append((case.id, policy, engine))
    assert wrong == []


@cache
def _overlays() -> list[tuple[list[Case], Overlay]]:
    """The cases with the same namespaces, and an overlay that has their patterns."""
    found = []
    for group in _by_namespaces():
        overlay = Overlay.tree(levels=3, fanout=2, namespaces=group[0].namespaces)
        for case, router in zip(group, cycle(overlay.routers), strict=False):
            overlay.subscribe(router, case.pattern, case.id)
        found.append((group, overlay))
    return found


def _by_namespaces() -> list[list[Case]]:
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases():
        groups[str(case.namespaces)].append(case)
    return list(groups.values())
