"""A process that publishes, acknowledges and trims as fast as it can, until it is killed; it prints what is durable."""

import sys

from pathcast.broker import Accepted, Broker, Publication
from pathcast.log import SqliteLog

from .broker_world import TENANT, subscription

KEPT = 20


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(folder: str) -> None:
    """Work in a folder without end."""
    broker = Broker(SqliteLog(folder, segment_bytes=1 << 15))
    if (TENANT, "all") not in broker.state.subscriptions:
        for id in ("all", "acknowledged"):
            broker.subscribe(subscription(id, "//a")).result()
    while True:
        for result in broker.publish("news", [Publication(f"<a>{'x' * 4_000}</a>".encode())] * 3).result():
            assert isinstance(result, Accepted)
            say(f"accepted {result.sequence}")
        pulled = [each.entry.sequence for each in broker.pull(TENANT, "acknowledged", 100).deliveries]
        future, _ = broker.acknowledge(TENANT, "acknowledged", pulled)
        future.result()
        for sequence in pulled:
            say(f"acknowledged {sequence}")
        begin = max(1, broker.log.head - KEPT)
        say(f"trims {begin}")
        broker.trim(begin)
        say(f"trimmed {begin}")


if __name__ == "__main__":
    main(sys.argv[1])
