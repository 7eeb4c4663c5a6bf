"""The `[uploads]` section of `broker.toml`."""

from dataclasses import dataclass

from pathcast.toml_files import DURATION, NUMBER, PATH, SIZE, key


@dataclass(frozen=True, kw_only=True)
class UploadsSection:
    """Documents that are uploaded first, and published later as a batch, all or none."""

    folder: str | None = key(PATH, "The folder of uploads.", None, without="`uploads` in the folder of `--data`")
    expire: float = key(DURATION, "How long an upload waits for the commit of its batch.", 3_600.0, without="`1 hour`")
    tenant: int = key(SIZE, "Bytes of uploads that a tenant may have at a time.", 1 << 30, without="`1 GiB`")
    batch: int = key(
        SIZE,
        "Bytes of the uploads of one batch. The broker has them in memory while it commits the batch, and publishes "
        "nothing else meanwhile.",
        128 << 20,
        without="`128 MiB`",
    )
    documents: int = key(NUMBER, "Documents of one batch.", 100_000)
