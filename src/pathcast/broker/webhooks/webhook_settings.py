"""The `[webhooks]` section of `broker.toml`."""

from dataclasses import dataclass

from pathcast.toml_files import DURATION, FLAG, NUMBER, PATH, SIZE, key


@dataclass(frozen=True, kw_only=True)
class WebhooksSection:
    """How deliveries are sent to sinks."""

    allow_private: bool = key(
        FLAG,
        "Whether sinks may have private, loopback and other special addresses, and use `http`. A client that may "
        "subscribe can then make the broker send requests to machines of your network.",
        False,
        without="`false`",
    )
    key_file: str | None = key(
        PATH,
        "The file that secrets of subscriptions are derived from, made if it is missing. Standbys need a copy.",
        None,
        without="`webhook-signing.key` in the folder of `--data`",
    )
    timeout: float = key(DURATION, "The time for one request, with its connection.", 10.0, without="`10 seconds`")
    first_delay: float = key(
        DURATION,
        "The longest wait after a first failure; it doubles with each further failure. The wait is random.",
        1.0,
        without="`1 second`",
    )
    longest_delay: float = key(
        DURATION, "The longest wait between two attempts, or that `Retry-After` causes.", 600.0, without="`10 minutes`"
    )
    max_deliver: int = key(
        NUMBER, "Attempts until a delivery becomes a dead letter, for subscriptions without `max_deliver`.", 20
    )
    answer: int = key(SIZE, "Bytes of an answer that are read.", 64 << 10, without="`64 KiB`")
