"""Short paths: namespaces in paths as prefixes, for people to read and to type.

A prefix is made from the end of a namespace's URI: `cbc` for `urn:…:CommonBasicComponents-2`, `atom` for
`http://www.w3.org/2005/Atom`.

Invariant: different namespaces have different prefixes; `full(short(path))` is the path.
"""

import re
from collections.abc import Iterable

_NAMESPACE = re.compile(r"\{([^}]*)\}")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class ShortPaths:
    """The paths of some schema nodes, with prefixes."""

    def __init__(self, paths: Iterable[str], like: "ShortPaths | None" = None) -> None:
        self._paths = list(paths)
        self.prefixes: dict[str, str] = {} if like is None else like.prefixes  # shared: a prefix means one namespace
        for path in self._paths:
            for uri in _NAMESPACE.findall(path):
                if uri not in self.prefixes:
                    self.prefixes[uri] = self._prefix(uri)
        self._full = {self.short(path): path for path in self._paths}
        self._bare: dict[str, list[str]] = {}
        for path in self._paths:
            self._bare.setdefault(_NAMESPACE.sub("", path), []).append(path)

    def _prefix(self, uri: str) -> str:
        ends = [part for part in re.split(r"[/:#]+", uri) if _WORD.search(part)]
        words = _WORD.findall(ends[-1]) if ends else []
        made = "".join(word[0] for word in words).lower() if len(words) > 1 else "".join(words).lower()[:8]
        found, number = made or "n", 1
        while found in self.prefixes.values():
            number += 1
            found = f"{made or 'n'}{number}"
        return found

    def short(self, path: str) -> str:
        """A path with prefixes instead of namespaces."""
        return _NAMESPACE.sub(lambda found: f"{self.prefixes[found[1]]}:", path)

    def full(self, text: str) -> str | None:
        """The path that a person means: in full, with prefixes, or without namespaces where only one path fits."""
        if text in self._paths:
            return text
        bare = self._bare.get(text, [])
        return self._full.get(text) or (bare[0] if len(bare) == 1 else None)

    def shorts(self) -> list[str]:
        """All paths, short."""
        return list(self._full)

    def legend(self) -> list[str]:
        """A line for each prefix."""
        return [f"{prefix} = {uri}" for uri, prefix in self.prefixes.items()]
