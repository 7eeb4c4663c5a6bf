"""A connection to NATS servers for callers in any thread.

The client of `nats-py` belongs to one event loop, which runs in a thread of its own. `run` hands a coroutine to this
loop and waits for its result.

The client connects again by itself, to any server of the cluster. While it has no connection, it sends nothing and
keeps nothing to send later: a request then fails at once, and the caller decides whether to try again.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pathcast.extras import extra

from ..log_contract import LogError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_Result = TypeVar("_Result")


class ConnectionLostError(Exception):
    """The connection was lost after a message was sent and before the answer came."""


class NatsConnection:
    """Connected from its creation until `close`. `options` are those of `nats.connect`, such as `user_credentials`."""

    def __init__(self, servers: Sequence[str], options: Mapping[str, Any], timeout: float) -> None:
        with extra("jetstream"):
            from nats.aio.client import Client
        self.servers = ", ".join(servers)
        self.timeout = timeout
        self._problem: Exception | None = None
        self._lost: asyncio.Future[None]  # done as soon as the present connection is lost
        self._closed = False
        self._change = Lock()  # of `_closed`
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="pathcast nats", daemon=True)
        self._thread.start()
        self.client = Client()
        try:
            self.run(self._connect(list(servers), options))
        except BaseException:
            self.close()
            raise

    async def _connect(self, servers: list[str], options: Mapping[str, Any]) -> None:
        from nats.errors import Error

        settings = {
            "name": "pathcast",
            "pending_size": 0,  # nothing is kept to be sent after a connection was lost
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": 0.1,
            "connect_timeout": 2,
            "ping_interval": 5,
            **options,
            "error_cb": self._remember,
            "disconnected_cb": self._disconnected,
        }
        self._lost = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait_for(self.client.connect(servers, **settings), self.timeout)
        except (Error, OSError, TimeoutError) as error:
            reason = self._problem or error
            reason_text = str(reason) or type(reason).__name__
            raise LogError(
                f"cannot connect to {self.servers} ({reason_text}); check the addresses, and that a NATS server "
                "runs there"
            ) from error

    async def _remember(self, error: Exception) -> None:
        self._problem = error

    async def _disconnected(self) -> None:
        self._lost.set_result(None)
        self._lost = asyncio.get_running_loop().create_future()

    async def request(self, subject: str, data: bytes, seconds: float, headers: dict[str, str] | None = None) -> "Msg":
        """The answer to a message, for callers in the connection's loop. It comes over this connection or never."""
        answer = asyncio.ensure_future(self.client.request(subject, data, seconds, headers=headers))
        awaited: set[asyncio.Future[Any]] = {answer, self._lost}
        await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        answer.cancel()
        raise ConnectionLostError("the connection was lost")

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """The result of a coroutine; `LogError` if the connection is or gets closed."""
        with self._change:
            if self._closed:
                work.close()
                raise LogError("the log is closed; open it again")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        from nats.errors import Error

        try:
            return future.result()
        except Error as error:
            raise LogError(
                f"the connection to {self.servers} failed: {error}; close the log and open it again"
            ) from error
        except CancelledError:
            if not self._closed:
                raise
            raise LogError("the log is closed; open it again") from None

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Disconnect; calls in other threads end with an error."""
        with self._change:
            if self._closed:
                return
            self._closed = True
            finished = asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        finished.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _finish(self) -> None:
        with suppress(OSError):  # the connection was lost already
            await self.client.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
