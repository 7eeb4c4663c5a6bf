"""Work in several threads, with results in order: for kernels, which release Python's lock."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_threads(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """The results for all items, in order; at most two items per thread are processed ahead.

    If iterating over `items` raises, the error comes after the results for the items before it.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="pathcast") as pool:
        try:
            coming = iter(items)
            while True:
                try:
                    item = next(coming)
                except StopIteration:
                    break
                except Exception:
                    while waiting:
                        yield waiting.popleft().result()
                    raise
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # The caller needs no more results, or one item failed.
            for future in waiting:
                future.cancel()
