"""The `[webhooks]` section of `broker.toml`."""

from dataclasses import dataclass

from pathcast.toml_files import DURATION, FLAG, NUMBER, PATH, SIZE, key


@dataclass(frozen=True, kw_only=True)
class WebhooksSection:
    """How deliveries are sent to sinks."""

    allow_private: bool = key(
        FLAG,
        "Allow sinks with private, loopback and other special addresses, and `http`. Any client that may subscribe can "
        "then make the broker send requests to machines of your network.",
        False,
        without="`false`",
    )
    key_file: str | None = key(
        PATH,
        "The key file from which the broker derives the secrets of subscriptions. The broker creates a "
        "missing file. Standbys need a copy.",
        None,
        without="`webhook-signing.key` in the folder of `--data`",
    )
    timeout: float = key(
        DURATION, "The longest duration of one request, including the connection.", 10.0, without="`10 seconds`"
    )
    first_delay: float = key(
        DURATION,
        "The longest wait after the first failure; each further failure doubles it. The wait itself is random.",
        1.0,
        without="`1 second`",
    )
    longest_delay: float = key(
        DURATION,
        "The longest wait between two attempts, including waits that `Retry-After` asks for.",
        600.0,
        without="`10 minutes`",
    )
    max_deliver: int = key(
        NUMBER, "Attempts until a delivery becomes a dead letter, for subscriptions without `max_deliver`.", 20
    )
    answer: int = key(SIZE, "The number of bytes that the broker reads of an answer.", 64 << 10, without="`64 KiB`")
