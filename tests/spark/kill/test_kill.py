"""Nothing is lost or duplicated when the driver and its workers are killed at any moment.

Two kills in every run of the tests; with `--long` 24, at random moments.
"""

import time

import pytest

from .scene import Scene
from .sinks import check

# Starts Sparks of its own, one after the other: beside the shared one, not after it.
pytestmark = [pytest.mark.xdist_group("kill"), pytest.mark.slow]


def test_a_killed_batch_is_replayed_with_its_version_and_dead_workers_cost_nothing(tmp_path):
    with Scene(tmp_path, seed=1) as scene:
        scene.start()
        scene.wait_until_streaming()
        scene.wait_for(lambda: scene.unfinished("filed", first=1), "a batch")
        scene.kill_driver()
        killed = {query: scene.unfinished(query) for query in scene.pins}
        scene.publish()  # a replay must not take this one
        scene.start()
        scene.wait_until_streaming()
        for query, was in killed.items():
            if was is not None:
                batch, version = was
                scene.wait_for(lambda batch=batch, query=query: max(scene.look_at_pins()[query]) > batch, "a replay")
                assert scene.pins[query][batch] == version
        scene.wait_for(scene.kill_workers, "workers")
        scene.finish()
        check(scene)


def test_random_kills(tmp_path, request):
    if not request.config.getoption("--long"):
        pytest.skip("24 kills take some minutes: --long")
    with Scene(tmp_path, seed=time.time_ns()) as scene:
        replayed = workers = 0
        scene.start()
        for _ in range(12):
            scene.wait_until_streaming()
            scene.wait_for(lambda: scene.unfinished("filed") or scene.unfinished("delivered"), "a batch")
            scene.pause(2)
            scene.wait_for(scene.kill_workers, "workers")
            workers += 1
            moment = scene.random.choice(["any", "filed", "delivered"])
            if moment == "any":
                scene.pause(2)
            else:
                scene.wait_for(lambda query=moment: scene.unfinished(query), "a batch")
            scene.kill_driver()
            replayed += sum(scene.unfinished(query) is not None for query in scene.pins)
            scene.publish()
            scene.start()
        scene.wait_until_streaming()
        scene.finish()
        check(scene)
        batches = {query: max(pins) + 1 for query, pins in scene.pins.items()}
        kills = f"drivers killed 12 times, workers {workers} times, {scene.restarts} restarts"
        rows = f"{scene.documents} documents, {scene.version} versions, {batches} batches, {replayed} replayed"
        print(kills, rows, sep="\n")  # noqa: T201
        assert replayed, "no kill came in the middle of a batch"
