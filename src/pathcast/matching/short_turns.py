"""Short turns: single matches that keep the GIL while their kernels run.

A small document takes several kernels of some microseconds each. While another thread changes subscriptions, or builds
the next index, each of them would hand the GIL over, and the match would wait several times. So a thread that is alone
in matching keeps it.

Threads that match single documents at the same time release it, since they gain from each other's kernels. So does, for
a while, a match after one that took long, because other threads would wait for it: for a large document, or patterns
that are expensive to verify.

Invariant: the answers do not depend on it.
"""

from threading import get_ident
from time import perf_counter

from pathcast.kernels import keep_gil, release_gil

# Larger documents are not small, whatever their match costs.
_SMALL = 1 << 16
# After two turns in a row that take longer, in seconds, some matches release the GIL. One alone may have waited for a
# processor. Python's threads take turns of 5 ms.
_LONGEST, _PAUSE = 0.002, 64


class ShortTurns:
    """The single matches of one matcher: `arrive` and `begin` before each, `end` after it."""

    def __init__(self, longest: float = _LONGEST) -> None:
        self._longest = longest
        self._matching: set[int] = set()  # threads
        self._pause = 0
        self._was_long = False
        self._begun = 0.0  # the turn that keeps the GIL

    @property
    def in_progress(self) -> bool:
        """Whether a thread matches a single document, or is about to."""
        return bool(self._matching)

    def arrive(self) -> None:
        """Announce that this thread is about to match a document: first it follows the changes, which may take long."""
        self._matching.add(get_ident())

    def begin(self, document: object) -> None:
        """Begin to match a document."""
        self.arrive()
        if not isinstance(document, bytes | str) or len(document) > _SMALL or len(self._matching) > 1:
            return
        if self._pause:
            self._pause -= 1
            return
        self._begun = perf_counter()
        keep_gil()

    def end(self) -> None:
        """End the match that this thread has begun."""
        self._matching.discard(get_ident())
        if release_gil():
            is_long = perf_counter() - self._begun > self._longest
            if is_long and self._was_long:
                self._pause = _PAUSE
            self._was_long = is_long
