"""One webhook request: a signed POST to the address that the sink's name resolved to, and what its answer means.

    2xx                          delivered
    410                          the receiver wants no more: the subscription's webhook is disabled
    429, 503 with Retry-After    wait; this attempt does not count
    anything else                failed: try again later

Redirects are not followed. Of an answer, at most `answer` bytes are read, and the whole request ends after `timeout`.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import httpx

from ..observation.document_trace_attribute import NAME
from .signatures import signed_headers
from .sink_addresses import SinkError, checked_sink, resolved
from .webhook_settings import WebhooksSection

_PORTS: Final = {"http": 80, "https": 443}


class Message(NamedTuple):
    """What is sent: its id, its body, the secret that signs it, and the trace that it belongs to."""

    id: str
    body: bytes
    secret: str
    trace: str | None = None


class Outcome(NamedTuple):
    """What became of a request. `wait`: seconds that the receiver asked for."""

    status: int | None
    error: str | None = None
    wait: float | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver has it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more."""
        return self.status == 410

    @property
    def name(self) -> str:
        """The outcome in one word."""
        if self.delivered:
            return "delivered"
        if self.gone:
            return "gone"
        return "failed" if self.wait is None else "throttled"


class WebhookClient:
    """Sends requests to one sink. Its connections are its own, so none is shared between names."""

    def __init__(
        self, settings: WebhooksSection, context: object, resolver: Executor, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._resolver = resolver
        self._clock = clock
        self._http = httpx.AsyncClient(
            verify=context,  # type: ignore[arg-type]
            trust_env=False,
            follow_redirects=False,
            timeout=settings.timeout,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=1, keepalive_expiry=15),
            headers={"user-agent": "pathcast", "accept-encoding": "identity"},
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, sink: str, message: Message) -> Outcome:
        """Send a message once."""
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await self._sent(sink, message)
        except TimeoutError:
            return Outcome(None, f"no answer within {self._settings.timeout:g} seconds")
        except SinkError as error:
            return Outcome(None, error.reason)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            # No text of the error: it may show what a machine of the broker's network answered.
            return Outcome(None, f"the request failed: {type(error).__name__}")

    async def _sent(self, sink: str, message: Message) -> Outcome:
        private = self._settings.allow_private
        url = checked_sink(sink, allow_private=private)
        port = url.port or _PORTS[url.scheme]
        loop = asyncio.get_running_loop()
        address = await loop.run_in_executor(
            self._resolver, lambda: resolved(url.raw_host.decode(), port, allow_private=private)
        )
        headers = signed_headers(message.secret, message.id, int(self._clock()), message.body)
        if message.trace is not None:
            headers[NAME] = message.trace
        request = self._http.build_request(
            "POST",
            url.copy_with(host=address),
            content=message.body,
            headers={**headers, "host": url.netloc.decode(), "content-type": "application/json"},
            extensions={**self._http_timeout(), "sni_hostname": url.raw_host.decode()},
        )
        answer = await self._http.send(request, stream=True)
        try:
            read = 0
            async for chunk in answer.aiter_raw():
                read += len(chunk)
                if read > self._settings.answer:
                    break
        except httpx.HTTPError:
            pass  # the status counts: the receiver has decided
        finally:
            await answer.aclose()
            self._http.cookies.clear()
        return self._outcome(answer)

    def _http_timeout(self) -> dict[str, object]:
        return {"timeout": httpx.Timeout(self._settings.timeout).as_dict()}

    def _outcome(self, answer: httpx.Response) -> Outcome:
        status = answer.status_code
        if 200 <= status < 300:
            return Outcome(status)
        wait = None
        if status in (429, 503):
            wait = seconds_of(answer.headers.get("retry-after"), self._clock())
        return Outcome(status, f"the receiver answered {status}", None if wait is None else wait)


def seconds_of(retry_after: str | None, now: float) -> float | None:
    """The seconds that a `Retry-After` asks for, as a number or a date; None if it is missing or malformed."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
