"""A broker's log over HTTP: its records as Arrow batches, and leases that keep them from being trimmed.

    GET /v1/log ──pieces──▶ Arrow batches ──▶ caller          cut? ──▶ again, right after the last record

Invariant: `batches` yields each record of its range once, in order, or raises an error; a stream that was cut is
continued. The token needs the scope `administer` (docs/reference/log-stream.md).
Cost: memory for one batch of some 4 MB.
"""

import io
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from pathcast.errors import PathcastError
from pathcast.extras import extra
from pathcast.log import EXPIRED, Checkpoint, TrimmedError, arrow_schema

with extra("client"):
    import httpx

from . import calls
from .broker_addresses import Addresses
from .broker_errors import BrokerError, UnreachableError
from .calls import Answer

if TYPE_CHECKING:
    import pyarrow


class LogBounds(NamedTuple):
    """The oldest record that can be read, and the last one."""

    first: int
    head: int


class LogReader:
    """Reads the log of the broker at `url`. Close it, or use it in a `with` statement.

    `url` may be several addresses, in a list or separated by commas: those of a broker and its standbys, which have the
    same log. A lease ends with the broker that gave it.
    """

    def __init__(self, url: str | Iterable[str], token: str | None = None, *, patience: float = 60.0) -> None:
        self._addresses = Addresses(url)
        self._patience = patience
        timeout = httpx.Timeout(60.0, connect=10.0, read=self._addresses.patience)
        self._http = httpx.Client(headers=calls.headers_of(token), timeout=timeout)

    @property
    def url(self) -> str:
        """The address that the reader uses now."""
        return self._addresses.current

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bounds(self) -> LogBounds:
        """The current extent of the log."""
        headers = self._answer("GET", "/v1/log", {"to": "0", "bodies": "none"}).headers
        return LogBounds(_number(headers, "pathcast-from"), _number(headers, "pathcast-head"))

    def expired(self) -> dict[str, int]:
        """Per feed with documents beyond its retention, the first sequence that has not expired."""
        with extra("parquet"):
            import pyarrow as pa

        content = self._answer("GET", "/v1/log", {"to": "0", "bodies": "none"}).content
        with pa.ipc.open_stream(content) as stream:
            marks = (stream.schema.metadata or {}).get(EXPIRED.encode(), b"{}")
        return msgspec.json.decode(marks, type=dict[str, int])

    def checkpoint(self) -> Checkpoint | None:
        """The log's latest checkpoint: what the records up to its sequence add up to."""
        response = self._answer("GET", "/v1/log/checkpoint")
        if response.status_code == 204:
            return None
        return Checkpoint(_number(response.headers, "pathcast-sequence"), response.content)

    def batches(
        self,
        begin: int,
        end: int,
        *,
        kinds: Iterable[str] = (),
        feeds: Iterable[str] = (),
        lease: str | None = None,
    ) -> "Iterator[pyarrow.RecordBatch]":
        """The records from `begin` to before `end`, in the columns of `log.arrow_schema`.

        `kinds` and `feeds` choose records; `lease` is extended while they are read. `TrimmedError` if a record
        was trimmed. Documents beyond their feed's retention are among them until they are trimmed; see `expired`.
        """
        retries = self._addresses.retries(self._patience)
        while begin < end:
            query = {"from": str(begin), "to": str(end - 1)}
            query |= {name: ",".join(chosen) for name, chosen in (("kinds", kinds), ("feeds", feeds)) if chosen}
            if lease is not None:
                query["lease"] = lease
            address = self.url
            failure: PathcastError = UnreachableError(
                f"the broker at {address} ended the stream of records early; read the records again"
            )
            at_least = 0.0
            try:
                with self._http.stream("GET", address + "/v1/log", params=query) as response:
                    if response.status_code == 200:
                        covered = _number(response.headers, "pathcast-to") + 1
                        for batch in _batches(response):
                            if batch.num_rows == 0:  # the end, which shows that the stream was not cut
                                begin = covered
                                break
                            yield batch
                            begin = batch.column(0)[-1].as_py() + 1
                            retries.succeeded()
                        else:
                            time.sleep(self._addresses.seconds(retries, address, failure, at_least))
                        continue
                    answer = Answer(response.status_code, response.headers, response.read())
                    failure, at_least = self._error(answer), answer.retry_after
                    if not answer.is_temporary:
                        raise failure
            except (httpx.TransportError, httpx.StreamError) as error:
                failure = calls.unreachable(address, error)
            time.sleep(self._addresses.seconds(retries, address, failure, at_least))

    def take_lease(self, begin: int) -> str:
        """Keep the records from `begin` on for a minute, unless the lease is extended; returns the id of the lease."""
        return str(self._answer("POST", "/v1/log/leases", json={"from": begin}).json()["id"])

    def extend_lease(self, lease: str, begin: int | None = None) -> bool:
        """Extend a lease, and release the records before `begin`; False if the lease has ended."""
        return self._unless_gone("PUT", lease, {} if begin is None else {"from": begin})

    def release_lease(self, lease: str) -> bool:
        """End a lease; False if it has ended before."""
        return self._unless_gone("DELETE", lease, None)

    def _unless_gone(self, method: str, lease: str, content: dict[str, int] | None) -> bool:
        try:
            self._answer(method, f"/v1/log/leases/{lease}", json=content)
        except BrokerError as error:
            if error.status == 404:
                return False
            raise
        return True

    def _answer(self, method: str, path: str, query: dict[str, str] | None = None, *, json: Any = None) -> Any:
        """The answer to a request, which is sent again while the broker is expected to answer soon."""
        retries = self._addresses.retries(self._patience)
        while True:
            at_least, address = 0.0, self.url
            try:
                response = self._http.request(method, address + path, params=query, json=json)
            except httpx.TransportError as error:
                failure: PathcastError = calls.unreachable(address, error)
            else:
                answer = Answer(response.status_code, response.headers, response.content)
                if 200 <= answer.status < 300:
                    return response
                failure, at_least = self._error(answer), answer.retry_after
                if not answer.is_temporary:
                    raise failure
            time.sleep(self._addresses.seconds(retries, address, failure, at_least))

    @staticmethod
    def _error(answer: Answer) -> PathcastError:
        """The problem that the broker reports; `TrimmedError` if records were trimmed."""
        error = answer.error()
        first = error.problem.get("first")
        return TrimmedError(error.reason, first=first) if answer.status == 410 and isinstance(first, int) else error


class _Pieces(io.RawIOBase):
    """The pieces of an answer as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._piece:
            try:
                self._piece = memoryview(next(self._pieces))
            except StopIteration:
                return 0
        count = min(len(buffer), len(self._piece))
        buffer[:count] = self._piece[:count]
        self._piece = self._piece[count:]
        return count


def _batches(response: "httpx.Response") -> "Iterator[pyarrow.RecordBatch]":
    """The batches of an answer as far as it came; nothing more if it was cut in the middle of a batch."""
    with extra("parquet"):
        import pyarrow as pa

    try:
        with pa.ipc.open_stream(io.BufferedReader(_Pieces(response.iter_bytes()), 1 << 16)) as reader:
            if not reader.schema.equals(arrow_schema()):
                raise BrokerError(
                    f"the response is not a Pathcast log: its columns are {', '.join(reader.schema.names)}; check that "
                    "the URL belongs to a Pathcast broker"
                )
            yield from reader
    except (pa.ArrowInvalid, OSError):
        return


def _number(headers: Any, name: str) -> int:
    text = headers.get(name, "")
    if not (text.isascii() and text.isdigit()):
        raise BrokerError(f"the answer has no header {name}; check that the address belongs to a Pathcast broker")
    return int(text)
