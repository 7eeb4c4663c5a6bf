"""The addresses of a broker and its standbys: which one a client talks to.

A client stays with an address until a call fails there, or gets an answer that a standby gives, too; then it goes on to
the next. It never connects to an address that a server names: its token is for those that it was given.
"""

import threading
from collections.abc import Iterable
from typing import Final

from pathcast.errors import PathcastError

from .calls import checked_url
from .retries import OnRetry, Retries

# With several addresses, the longest wait between attempts: another one may have become the active broker.
MOST_SECONDS: Final = 1.0
_READ_SECONDS: Final = 10.0
_READ_SECONDS_OF_ONE: Final = 60.0


class Addresses:
    """Addresses in turn, for any thread. `url` may be one, several separated by commas, or a list."""

    def __init__(self, url: str | Iterable[str]) -> None:
        given = url.split(",") if isinstance(url, str) else list(url)
        self._all = [checked_url(each.strip()) for each in given]
        if not self._all:
            raise PathcastError("no broker address was given; give an address such as http://127.0.0.1:8080")
        self._change = threading.Lock()
        self._at = 0

    @property
    def current(self) -> str:
        """The address to use now."""
        return self._all[self._at]

    @property
    def are_several(self) -> bool:
        """Whether there is another address."""
        return len(self._all) > 1

    @property
    def patience(self) -> float:
        """Seconds to wait for an answer from one address: a broker that hangs may have a successor."""
        return _READ_SECONDS if self.are_several else _READ_SECONDS_OF_ONE

    def retries(self, patience: float, on_retry: OnRetry | None = None) -> Retries:
        """The failures of a new call."""
        return Retries(patience, on_retry, MOST_SECONDS) if self.are_several else Retries(patience, on_retry)

    def seconds(self, retries: Retries, address: str, failure: PathcastError, at_least: float) -> float:
        """The wait after a failure at an address, before the attempt at the next."""
        self.failed(address)
        return retries.seconds(failure, 0.0 if self.are_several else at_least)

    def failed(self, address: str) -> None:
        """Go on to the next address, unless another thread already has."""
        with self._change:
            if self._all[self._at] == address:
                self._at = (self._at + 1) % len(self._all)
