"""Standing joins: clients are right in the end, whenever the driver and its workers are killed.

Two kills in every run of the tests; with `--long` 12 at random moments, and 4 of a pipeline from a file.
"""

import time

import pytest

from .join_scene import JoinScene, check
from .pipeline_scene import PipelineScene
from .pipeline_scene import check as check_pipeline

# Starts Sparks of its own, one after the other: beside the shared one, not after it.
pytestmark = [pytest.mark.xdist_group("kill"), pytest.mark.slow]


def test_a_killed_micro_batch_of_joins_is_replayed_with_its_version(tmp_path):
    with JoinScene(tmp_path, seed=1, most=4) as scene:
        scene.start()
        scene.wait_until_streaming()
        scene.wait_for(lambda: scene.unfinished("joined", first=1), "a batch")
        scene.kill_driver()
        killed = scene.unfinished("joined")
        scene.publish()  # a replay must not take this one
        scene.most = 7
        scene.start()
        scene.wait_until_streaming()
        if killed is not None:
            batch, version = killed
            scene.wait_for(lambda: max(scene.look_at_pins()["joined"]) > batch, "a replay")
            assert scene.pins["joined"][batch] == version
        scene.wait_for(scene.kill_workers, "workers")
        scene.finish()
        check(scene)


def test_random_kills_of_joins(tmp_path, request):
    if not request.config.getoption("--long"):
        pytest.skip("12 kills take some minutes: --long")
    with JoinScene(tmp_path, seed=time.time_ns()) as scene:
        scene.start()
        for _ in range(6):
            scene.wait_until_streaming()
            scene.wait_for(lambda: scene.unfinished("joined"), "a batch")
            scene.pause(2)
            scene.wait_for(scene.kill_workers, "workers")
            scene.pause(2)
            scene.kill_driver()
            scene.publish()
            scene.start()
        scene.wait_until_streaming()
        scene.finish()
        check(scene)


def test_random_kills_of_a_pipeline_file_with_joins(tmp_path, request):
    if not request.config.getoption("--long"):
        pytest.skip("4 kills of a pipeline take some minutes: --long")
    with PipelineScene(tmp_path, seed=time.time_ns()) as scene:
        scene.start()
        for _ in range(4):
            scene.wait_until_streaming()
            scene.wait_for(lambda: scene.unfinished("joined"), "a batch")
            scene.pause(2)
            scene.kill_driver()
            scene.publish()  # a replay must not take this one
            scene.start()
        scene.wait_until_streaming()
        scene.finish()
        check_pipeline(scene)
