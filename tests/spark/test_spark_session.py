"""`session`: our settings for a local Spark, no changes to an existing one."""

import os
import signal
import subprocess
import sys
from threading import Thread
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkRuntimeError

import pathcast.spark
from pathcast.errors import PipelineError
from pathcast.spark import session
from pathcast.spark.sessions import spark_session as sessions
from pathcast.spark.sessions.java_installation import find_java


def test_of_several_test_processes_one_has_all_that_share_a_spark(request):
    if request.config.getoption("dist", "no") == "loadgroup":
        assert request.node.nodeid.endswith("@spark")


def test_workers_run_the_drivers_interpreter(spark):
    def interpreter(batches):
        import sys

        import pyarrow as pa

        for _ in batches:
            yield pa.record_batch([[sys.executable]], names=["python"])

    [row] = spark.range(1).coalesce(1).mapInArrow(interpreter, "python string").collect()
    assert row.python == sys.executable


def test_a_running_session_is_returned_as_it_is(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    assert session() is spark
    assert spark.conf.get("spark.sql.shuffle.partitions") == before == "2"


def test_a_running_session_is_found_from_another_thread_and_left_alone(spark):
    found = []
    thread = Thread(target=lambda: found.append(session().conf.get("spark.sql.shuffle.partitions")))
    thread.start()
    thread.join()
    assert found == ["2"]


def test_a_running_session_is_not_changed_behind_its_owners_back(spark):
    assert session(settings={"spark.sql.shuffle.partitions": "2"}) is spark
    with pytest.raises(PipelineError, match=r"running with spark\.sql\.shuffle\.partitions=2"):
        session(settings={"spark.sql.shuffle.partitions": "7"})


def test_given_settings_and_the_users_file_win_over_ours(monkeypatch, tmp_path):
    (tmp_path / "spark-defaults.conf").write_text(
        "# mine\nspark.sql.shuffle.partitions 99\nspark.ui.enabled=true\n\n", encoding="utf-8"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    settings = asked_for(monkeypatch, {"spark.master": "local[1]"})
    assert settings["spark.master"] == "local[1]"
    assert "spark.sql.shuffle.partitions" not in settings
    assert "spark.ui.enabled" not in settings
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"


@pytest.mark.parametrize(("name", "value"), [("PYSPARK_GATEWAY_PORT", "1"), ("SPARK_REMOTE", "sc://host")])
def test_a_session_that_was_started_elsewhere_gets_no_local_settings(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert asked_for(monkeypatch, {}) == {}


def test_a_local_connect_server_gets_java_and_the_local_settings_but_no_second_master(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "local[2]")
    monkeypatch.setenv("JAVA_HOME", "")
    local = {key: value for key, value in sessions.LOCAL_SETTINGS.items() if key != "spark.master"}
    assert asked_for(monkeypatch, {}) == local
    assert os.environ["JAVA_HOME"] == str(find_java().home)


def test_the_chosen_java_and_interpreter_are_handed_to_spark(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/another")
    asked_for(monkeypatch, {})
    assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == sys.executable
    assert os.environ["JAVA_HOME"] == str(find_java().home)


def test_spark_runs_on_the_java_that_was_found(spark):
    found = [str(find_java().home / "bin" / "java"), "-XshowSettings:properties", "-version"]
    says = subprocess.run(found, capture_output=True, text=True, check=True).stderr
    assert f"java.home = {spark.sparkContext._jvm.System.getProperty('java.home')}\n" in says


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupt_waits_until_spark_is_up(number):
    before = signal.signal(number, signal.default_int_handler)
    reached = []

    def start() -> None:
        with sessions._interrupts_held():
            signal.raise_signal(number)
            reached.append("up")

    try:
        with pytest.raises(KeyboardInterrupt):
            start()
        assert reached == ["up"]
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_sigterm_that_ends_the_program_does_not_wait():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with sessions._interrupts_held():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_handler_that_spark_installs_while_it_starts_stays():
    before = signal.getsignal(signal.SIGINT)
    try:
        with sessions._interrupts_held():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_pyspark_the_way_to_install_it_is_said():
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import pathcast.spark.sessions.java_installation\n"
        "try:\n    from pathcast.spark import session\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == 'MissingExtraError pyspark is not installed; run: pip install "pathcast[spark]"'


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'matcher'"):
        _ = pathcast.spark.matcher


def test_a_spark_that_does_not_start_says_so_in_a_line(monkeypatch):
    class Builder:
        def appName(self, name):  # noqa: N802
            return self

        def config(self, key, value):
            return self

        def getOrCreate(self):  # noqa: N802
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(sessions, "running", lambda: None)
    monkeypatch.setattr(sessions, "SparkSession", SimpleNamespace(builder=Builder()))
    with pytest.raises(PipelineError, match=r"^Spark did not start: \[JAVA_GATEWAY_EXITED\] .*`pathcast doctor`"):
        session()


def asked_for(monkeypatch, settings) -> dict[str, str]:
    """The settings that a new session would be built with, without building it."""

    class Builder:
        def __init__(self) -> None:
            self.settings: dict[str, str] = {}

        def appName(self, name):  # noqa: N802
            return self

        def config(self, key, value):
            self.settings[key] = value
            return self

        def getOrCreate(self):  # noqa: N802
            return self

    class Sessions:
        builder = Builder()

    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # so that they are put back
    monkeypatch.setattr(sessions, "running", lambda: None)
    monkeypatch.setattr(sessions, "SparkSession", Sessions)
    session(settings=settings)
    return Sessions.builder.settings
