"""A clock that tests set."""


class SettableClock:
    """Seconds that tests set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now
