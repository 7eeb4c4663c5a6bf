"""Who makes a request, and what they may do.

Every request has an `Access`: a tenant, a name, and scopes. On the loopback address without tokens, everybody is the
local user, who may do everything.
"""

from typing import Final, NamedTuple

from .problems import ProblemError


class Access(NamedTuple):
    """What the sender of a request may do. `None` means all feeds, or every subscriber."""

    tenant: str
    name: str
    publish: frozenset[str] | None = frozenset()
    read: frozenset[str] | None = frozenset()
    subscribers: frozenset[str] | None = frozenset()
    administer: bool = False

    def check_publish(self, feed: str) -> None:
        """Raise `ProblemError` unless the sender may publish to a feed."""
        if self.publish is not None and feed not in self.publish:
            raise ProblemError(
                403, f"the token lacks the scope to publish to feed {feed!r}; use a token with scope publish:{feed}"
            )

    def check_read(self, feed: str) -> None:
        """Raise `ProblemError` unless the sender may read a feed."""
        if self.read is not None and feed not in self.read:
            raise ProblemError(
                403, f"the token lacks the scope to read feed {feed!r}; use a token with scope read:{feed}"
            )

    def check_subscriber(self, subscriber: str) -> None:
        """Raise `ProblemError` unless the sender may act as a subscriber."""
        if self.subscribers is not None and subscriber not in self.subscribers:
            raise ProblemError(
                403,
                f"the token lacks the scope to subscribe as {subscriber!r}; use a token with scope "
                f"subscribe:{subscriber}",
            )

    def check_administer(self) -> None:
        """Raise `ProblemError` unless the sender is an administrator."""
        if not self.administer:
            raise ProblemError(
                403, "the token lacks scope administer, which this request needs; use a token with scope administer"
            )


LOCAL: Final = Access("default", "local", None, None, None, administer=True)
