"""The options with which a DataFrame is written to a broker, checked."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pathcast.client import Client
from pathcast.errors import PipelineError

from .log_options import number_of, token_of

_KNOWN: Final = ("url", "token", "tokenFile", "feed", "publication", "batchId", "invalid", "patience")
# Spark hands these over with the options of a query.
_OF_SPARK: Final = frozenset({"checkpointlocation", "path", "queryname"})
_INVALID: Final = ("reject", "keep")
_BATCH: Final = "spark"  # the publication of batches that name none


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """Where rows are published, and as what. A `publication` is a series of batches, each published once."""

    url: str
    token: str | None = None
    feed: str | None = None
    publication: str | None = None  # None: the id of the streaming query
    batch: str = field(default_factory=lambda: uuid.uuid4().hex)
    keep_invalid: bool = False
    patience: float = 60.0

    def client(self) -> Client:
        """A client of the broker."""
        return Client(self.url, self.token, patience=self.patience)


def publish_options(given: Mapping[str, str], *, is_stream: bool) -> PublishOptions:
    """The checked options; `PipelineError` for unknown or wrong ones."""
    options = {name.lower(): value for name, value in given.items()}
    if unknown := sorted(options.keys() - {name.lower() for name in _KNOWN} - _OF_SPARK):
        raise PipelineError(
            f"unknown write option {unknown[0]!r} for format pathcast; supported options: {', '.join(_KNOWN)}"
        )
    if "url" not in options:
        raise PipelineError(
            "writing with format pathcast needs the option 'url', the address of a broker; set the option"
        )
    if is_stream and "batchid" in options:
        raise PipelineError(
            "option 'batchId' does not apply to a stream, which numbers its micro-batches; omit the option"
        )
    invalid = options.get("invalid", "reject")
    if invalid not in _INVALID:
        raise PipelineError(f"option 'invalid' must be one of {', '.join(_INVALID)}, got {invalid[:40]!r}")
    for name in ("publication", "batchid", "feed"):
        if options.get(name) == "":
            raise PipelineError(
                f"option {('batchId' if name == 'batchid' else name)!r} is empty; give a name, or omit the option"
            )
    chosen = {"batch": options["batchid"]} if "batchid" in options else {}
    return PublishOptions(
        url=options["url"],
        token=token_of(options),
        feed=options.get("feed"),
        publication=options.get("publication", None if is_stream else _BATCH),
        keep_invalid=invalid == "keep",
        patience=60.0 if "patience" not in options else float(number_of(options, "patience", 0)),
        **chosen,
    )
