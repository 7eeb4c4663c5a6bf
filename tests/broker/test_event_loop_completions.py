"""Results reach the event loop in few wake-ups, each where it belongs."""

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from pathcast.broker import Publication
from pathcast.broker.api.event_loop_completions import Awaited, Completions
from pathcast.broker.sequencing.batch_processing import Processed
from pathcast.broker.sequencing.sequencer import MOST_DOCUMENTS
from pathcast.broker.sequencing.sequencer_requests import TaskRequest

from .broker_world import broker_in


def test_a_burst_of_results_wakes_the_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> tuple[list[int], int]:
        loop = asyncio.get_running_loop()
        completions = Completions(loop)
        futures: list[Future[int]] = [Future() for _ in range(100)]
        waiting = asyncio.gather(*(completions.result(each) for each in futures))
        await asyncio.sleep(0)  # all of them wait
        wakes: list[object] = []
        call = loop.call_soon_threadsafe

        def counted(*arguments: Any) -> Any:
            wakes.append(arguments)
            return call(*arguments)

        monkeypatch.setattr(loop, "call_soon_threadsafe", counted)

        def complete() -> None:
            for number, each in enumerate(futures):
                each.set_result(number)

        # The loop's thread waits for this one, so it takes no result in between.
        thread = threading.Thread(target=complete)
        thread.start()
        thread.join()
        count = len(wakes)
        return await waiting, count

    results, wakes = asyncio.run(run())
    assert results == list(range(100))
    assert wakes == 1


def test_errors_and_cancellations_reach_whom_they_concern() -> None:
    async def run() -> None:
        completions = Completions(asyncio.get_running_loop())
        failed, cancelled, done, given_up = (Future[int]() for _ in range(4))
        tasks = [asyncio.create_task(completions.result(each)) for each in (failed, cancelled, done, given_up)]
        await asyncio.sleep(0)
        tasks[3].cancel()
        failed.set_exception(KeyError("k"))
        cancelled.cancel()
        done.set_result(5)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[0], KeyError)
        assert isinstance(results[1], asyncio.CancelledError)
        assert results[2] == 5
        assert isinstance(results[3], asyncio.CancelledError)
        assert given_up.cancelled()
        # A result that is there already, and results one after the other.
        for number in range(3):
            ready = Future[int]()
            ready.set_result(number)
            assert await completions.result(ready) == number

    asyncio.run(run())


def test_a_result_that_another_thread_sets_reaches_the_coroutine_that_awaits_it() -> None:
    async def run() -> None:
        completions = Completions(asyncio.get_running_loop())
        done, failed, twice, given_up = (completions.awaited() for _ in range(4))

        errors: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))

        async def waits(awaited: Awaited[int]) -> int:
            return await awaited

        tasks = [asyncio.create_task(waits(each)) for each in (done, failed, twice, given_up)]
        await asyncio.sleep(0)
        assert all(each.set_running_or_notify_cancel() for each in (done, failed, twice, given_up))
        tasks[3].cancel()
        await asyncio.sleep(0)
        assert given_up.done()
        assert not given_up.set_running_or_notify_cancel()

        def complete() -> None:
            done.set_result(5)
            failed.set_exception(KeyError("k"))
            twice.set_result(6)
            twice.set_exception(KeyError("too late"))

        await asyncio.to_thread(complete)
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
        assert results[0] == 5
        assert isinstance(results[1], KeyError)
        assert results[2] == 6
        assert errors == []
        assert isinstance(results[3], asyncio.CancelledError)

    asyncio.run(run())


def test_documents_that_wait_already_share_a_batch_up_to_a_bound(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        entered, release = threading.Event(), threading.Event()

        def hold() -> None:
            entered.set()
            assert release.wait(60)

        held = TaskRequest(hold)
        broker._sequencer.submit(held)
        assert entered.wait(60)
        batches: list[int] = []

        def seen(done: Processed) -> None:
            batches.extend(len(each.sequences) for _, each in done.matches)

        broker.listen(seen)
        futures = [broker.publish("news", [Publication(b"<n/>")]) for _ in range(MOST_DOCUMENTS + 10)]
        release.set()
        sequences = [each.sequence for future in futures for each in future.result()]  # type: ignore[union-attr]
        assert sequences == sorted(sequences)
        assert sum(batches) == MOST_DOCUMENTS + 10
        assert max(batches) == MOST_DOCUMENTS
