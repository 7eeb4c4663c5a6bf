"""One stream of a NATS cluster: what the log needs of JetStream's API, for callers in any thread.

With `expected`, the stream's last sequence, the server rejects a message if anybody else wrote in the meantime. Each
message is stored as a whole or not at all. The atomic batches of ADR-50 are not used: server 2.15 stores a part of a
batch, and does not answer, if its storage limit is reached in the middle; and it stages a batch before it stores it.

Messages are read from any server that has a replica (`batch`, `at`: direct get, ADR-31), or from the leader (`next`,
`last`). A replica may lag, but what it has is a prefix of the stream: messages that it returns are right, and only the
answer that there are no more needs the leader.

A request that only reads, or may be repeated, is repeated until the timeout. A publish is repeated only if the server
cannot have stored it, because nobody received it: otherwise it fails as soon as the connection is lost.
"""

import asyncio
import json
from base64 import b64decode
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple

from ..log_contract import LogError, LogFullError
from .nats_connection import ConnectionLostError, NatsConnection

_ATTEMPT, _PAUSE = 2.0, 0.05
_WRONG_LAST_SEQUENCE = {10071, 10164}
_NOT_FOUND = 404
_UNAVAILABLE = 503
# Storage of the server, of the account, insufficient resources.
_FULL = {10047, 10002, 10023}
_STORE_FAILED = 10077

# A stream with any other value would lose records, or could not be written or read as the log does.
REQUIRED: Mapping[str, Any] = {
    "retention": "limits",
    "storage": "file",
    "discard": "new",
    "max_msgs": -1,
    "max_age": 0,
    "max_msgs_per_subject": -1,
    "allow_direct": True,
}


class Message(NamedTuple):
    """A message in its place."""

    sequence: int
    subject: str
    data: bytes


class State(NamedTuple):
    """Which messages a stream has: fewer than from `first` to `last` if some in between were deleted."""

    first: int
    last: int
    messages: int
    subjects: dict[str, int]


class ConflictError(Exception):
    """Another writer wrote to the stream."""


class _AnswerError(Exception):
    """The server answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error.get("description", "unknown error"))
        self.code: int = error.get("code", 0)
        self.number: int = error.get("err_code", 0)


class Stream:
    """The stream with this name, which takes messages on all subjects that begin with `NAME.`."""

    def __init__(self, connection: NatsConnection, name: str, required: Mapping[str, Any] = REQUIRED) -> None:
        self.name = name
        self._required = required
        self._connection = connection

    def create(self, replicas: int) -> None:
        """Create the stream; if it exists, check that it keeps what is written."""
        wanted = {**self._required, "name": self.name, "subjects": [f"{self.name}.>"], "num_replicas": replicas}
        try:
            found = self._api("STREAM.INFO", {})["config"]
        except _AnswerError as error:
            if error.code != _NOT_FOUND:
                raise LogError(
                    f"cannot open the stream {self.name!r}: {error}; check the account and its JetStream permissions"
                ) from error
            try:
                found = self._api("STREAM.CREATE", wanted)["config"]
            except _AnswerError as failed:
                raise LogError(
                    f"cannot create the stream {self.name!r}: {failed}; check the JetStream limits and "
                    "permissions of the NATS account"
                ) from failed
        wrong = [
            f"{key} must be {value!r}, got {found.get(key)!r}"
            for key, value in wanted.items()
            if found.get(key) != value
        ]
        if wrong:
            raise LogError(
                f"the stream {self.name!r} has wrong settings for a log: {'; '.join(wrong)}; change them with "
                "`nats stream edit`, or choose another name"
            )

    def state(self, subjects: str = "") -> State:
        """Its messages, and the subjects that match."""
        found = self._asked("STREAM.INFO", {"subjects_filter": subjects} if subjects else {})["state"]
        return State(found["first_seq"], found["last_seq"], found["messages"], found.get("subjects") or {})

    def last(self, subject: str) -> Message | None:
        """The last message on these subjects."""
        return self._from_leader({"last_by_subj": subject})

    def next(self, subject: str, sequence: int) -> Message | None:
        """The first message on these subjects from a sequence on."""
        return self._from_leader({"next_by_subj": subject, "seq": sequence})

    def at(self, sequence: int) -> Message | None:
        """The message with this sequence."""
        return self._connection.run(self._direct(sequence)) or self._from_leader({"seq": sequence})

    def purge(self, *, before: int | None = None, subject: str | None = None) -> None:
        """Remove the messages before a sequence, on these subjects."""
        request = {"seq": before, "filter": subject}
        self._asked("STREAM.PURGE", {key: value for key, value in request.items() if value is not None})

    def _from_leader(self, request: dict[str, Any]) -> Message | None:
        try:
            found = self._api("STREAM.MSG.GET", request)["message"]
        except _AnswerError as error:
            if error.code == _NOT_FOUND:
                return None
            raise LogError(
                f"cannot read the stream {self.name!r}: {error}; check the server's log, then open the log again"
            ) from error
        return Message(found["seq"], found["subject"], b64decode(found.get("data", "")))

    def _asked(self, verb: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._api(verb, request)
        except _AnswerError as error:
            raise LogError(
                f"the stream {self.name!r} rejected {verb}: {error}; check its settings and the account's permissions"
            ) from error

    def _api(self, verb: str, request: dict[str, Any]) -> dict[str, Any]:
        return self._connection.run(self._repeated(f"$JS.API.{verb}.{self.name}", request))

    async def _repeated(self, subject: str, request: dict[str, Any]) -> dict[str, Any]:
        from nats.errors import NoRespondersError, OutboundBufferLimitError

        deadline = asyncio.get_running_loop().time() + self._connection.timeout
        while True:
            reason = "no answer"
            try:
                reply = await self._connection.request(subject, json.dumps(request).encode(), _ATTEMPT)
                answer: dict[str, Any] = json.loads(reply.data)
                if "error" not in answer:
                    return answer
                failed = _AnswerError(answer["error"])
                if failed.code != _UNAVAILABLE:
                    raise failed
                reason = str(failed)
            except (ConnectionLostError, NoRespondersError, OutboundBufferLimitError, TimeoutError) as error:
                reason = str(error) or reason
            if asyncio.get_running_loop().time() > deadline:
                raise LogError(
                    f"no answer from JetStream at {self._connection.servers} for {self.name!r} ({reason}); check that "
                    "JetStream is enabled, and that a majority of the servers is running"
                )
            await asyncio.sleep(_PAUSE)

    def publish(self, subject: str, data: bytes, expected: int | None = None) -> int:
        """Store a message; return its sequence. It is durable when this returns.

        `ConflictError` if the last sequence is not `expected`, `LogFullError` if there is no space: nothing was stored.
        After a `LogError` the outcome is unknown.
        """
        return self._connection.run(self.publishing(subject, data, expected))

    async def publishing(self, subject: str, data: bytes, expected: int | None = None) -> int:
        """`publish`, for callers in the connection's loop."""
        from nats.errors import Error, NoRespondersError, OutboundBufferLimitError

        clock = asyncio.get_running_loop().time
        deadline = clock() + self._connection.timeout
        headers = {} if expected is None else {"Nats-Expected-Last-Sequence": str(expected)}
        while True:
            try:
                left = max(deadline - clock(), _ATTEMPT)
                reply = await self._connection.request(subject, data, left, headers)
                break
            except (NoRespondersError, OutboundBufferLimitError) as error:
                if clock() > deadline:
                    raise LogError(
                        f"no server of {self._connection.servers} accepts messages for {self.name!r}; start the "
                        "servers (for a replicated stream, a majority of them)"
                    ) from error
                await asyncio.sleep(_PAUSE)
            except (ConnectionLostError, Error) as error:
                raise LogError(
                    f"no answer from {self._connection.servers} ({error}): the records may or may not have been "
                    "written; close the log, open it again and check the last record"
                ) from error
        answer = json.loads(reply.data)
        if "error" in answer:
            raise self._rejection(_AnswerError(answer["error"]))
        return int(answer["seq"])

    def _rejection(self, error: _AnswerError) -> Exception:
        if error.number in _WRONG_LAST_SEQUENCE:
            return ConflictError()
        if error.number in _FULL or (error.number == _STORE_FAILED and "maximum" in str(error)):
            return LogFullError(
                f"no space left in the stream {self.name!r} ({error}); trim the log, or raise the limits of the "
                "stream, the account and the server"
            )
        return LogError(
            f"the stream {self.name!r} rejected records: {error}; check its settings, then open the log again"
        )

    def batch(self, subject: str, sequence: int, count: int, max_bytes: int) -> list[Message]:
        """Some of the first messages on these subjects from a sequence on; none does not mean that there are none."""
        return self._connection.run(self._batch(subject, sequence, max(count, 2), max_bytes))

    async def _batch(self, subject: str, sequence: int, count: int, max_bytes: int) -> list[Message]:
        from nats.errors import OutboundBufferLimitError

        client, found, previous = self._connection.client, list[Message](), 0
        request = {"next_by_subj": subject, "seq": sequence, "batch": count, "max_bytes": max_bytes}
        inbox = client.new_inbox()
        replies = await client.subscribe(inbox)
        try:
            await client.publish(f"$JS.API.DIRECT.GET.{self.name}", json.dumps(request).encode(), reply=inbox)
            while True:
                reply = await replies.next_msg(_ATTEMPT)
                headers = reply.headers or {}
                # A status ends the batch. Each message names the one before it: otherwise that one got lost.
                if "Status" in headers or int(headers["Nats-Last-Sequence"]) != previous:
                    return found
                previous = int(headers["Nats-Sequence"])
                found.append(Message(previous, headers["Nats-Subject"], reply.data))
        except (TimeoutError, OutboundBufferLimitError):
            return found
        finally:
            await replies.unsubscribe()

    async def _direct(self, sequence: int) -> Message | None:
        from nats.errors import NoRespondersError, OutboundBufferLimitError

        request = json.dumps({"seq": sequence}).encode()
        try:
            reply = await self._connection.request(f"$JS.API.DIRECT.GET.{self.name}", request, _ATTEMPT)
        except (ConnectionLostError, NoRespondersError, OutboundBufferLimitError, TimeoutError):
            return None
        headers = reply.headers or {}
        return None if "Status" in headers else Message(sequence, headers["Nats-Subject"], reply.data)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of a coroutine that uses `publishing`."""
        return self._connection.run(work)
