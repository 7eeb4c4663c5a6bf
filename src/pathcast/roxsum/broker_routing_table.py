"""Targets: the routing table of a broker, with the profiles (XPath) of each target.

    targets = Targets({"east": ["/bib/book/title"], "west": ["//article[@year = 2007]"]})
    profile = targets.add("west", "/bib//author")
    targets.remove(profile)

All profiles of all targets are one set of subscriptions with one matcher, so that common parts are matched once. A
target is any hashable value; it stays in the table after its last profile is removed, and then receives nothing.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from pathcast.matching import Matcher, Subscriptions
from pathcast.patterns import Namespaces

Target = Hashable


class Targets:
    """Profiles by target."""

    def __init__(self, patterns: Mapping[Any, Iterable[str]] | None = None, namespaces: Namespaces = None) -> None:
        if patterns is not None and not isinstance(patterns, Mapping):
            raise TypeError(
                f"targets must be a mapping, such as {{'east': ['//title', '/news']}}, got {patterns!r:.80}"
            )
        self.subscriptions = Subscriptions(namespaces)
        self._numbers: dict[Target, int] = {}
        self._targets: list[Target] = []
        self._matcher: Matcher | None = None
        for target, xpaths in (patterns or {}).items():
            self.add_many(target, xpaths)

    def __len__(self) -> int:
        return len(self._targets)

    def __iter__(self) -> Iterator[Target]:
        return iter(self._targets)

    def __contains__(self, target: object) -> bool:
        return target in self._numbers

    def add(self, target: Target, xpath: str) -> int:
        """Add a profile; return its id, for `remove`."""
        return self.subscriptions.add(xpath, self._name(target))

    def add_many(self, target: Target, xpaths: Iterable[str]) -> list[int]:
        """Add profiles of one target, all or none; return their ids."""
        if isinstance(xpaths, str):
            raise TypeError(f"the patterns of target {target!r} must be a list, got {xpaths!r:.80}; put it into a list")
        name = self._name(target)
        wanted = list(xpaths)
        return list(self.subscriptions.add_many(wanted, [name] * len(wanted)))

    def remove(self, profile: int) -> None:
        """Remove a profile by its id; `KeyError` when there is none."""
        self.subscriptions.remove(profile)

    @property
    def matcher(self) -> Matcher:
        """The matcher of all profiles; it follows changes."""
        if self._matcher is None:
            self._matcher = self.subscriptions.compile()
        return self._matcher

    def of_name(self, name: str) -> Target:
        """The target of a subscriber's name."""
        return self._targets[int(name)]

    def _name(self, target: Target) -> str:
        number = self._numbers.setdefault(target, len(self._targets))
        if number == len(self._targets):
            self._targets.append(target)
        return str(number)
