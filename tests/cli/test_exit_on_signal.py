"""Ending commands by signals: status 130 or 143, clean-up, no traceback, also after repeated signals."""

import logging
import os
import signal
import sys
from pathlib import Path

import pytest

from pathcast.cli.app import main
from pathcast.cli.demo import pipeline_inputs as feed
from pathcast.cli.exit_on_signal import Stop, Terminated, Work, terminable


def test_sigterm_is_an_interrupt_with_a_status_of_its_own():
    before = signal.getsignal(signal.SIGTERM)
    cleaned = []

    def command() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt as error:
            signal.raise_signal(signal.SIGTERM)  # a second one does not disturb the cleaning up
            cleaned.append(type(error))
            sys.exit(130)

    with pytest.raises(SystemExit) as left, terminable():
        command()
    assert left.value.code == 143
    assert cleaned == [Terminated]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_that_no_signal_ended_keeps_its_status():
    with pytest.raises(SystemExit) as left, terminable():
        sys.exit(130)
    assert left.value.code == 130


def test_matching_ends_at_sigterm(tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "wishes.txt").write_text("//a\n")
    monkeypatch.setattr("pathcast.cli.match_command._size", lambda _: os.kill(os.getpid(), signal.SIGTERM))
    monkeypatch.setattr(sys, "argv", ["pathcast", "match", str(tmp_path / "wishes.txt"), str(tmp_path / "a.xml")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 143
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"])
def test_the_demo_ends_at_a_signal(tmp_path: Path, monkeypatch, capsys, request, number, status):
    monkeypatch.setattr(feed, "make_up", lambda *_: signal.raise_signal(number))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    monkeypatch.setattr(sys, "argv", ["pathcast", "demo", "--output", str(tmp_path / "demo")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == status
    out, errors = capsys.readouterr()
    assert out.splitlines()[-1] == "stopped"
    assert errors == ""


def test_after_the_first_signal_only_ctrl_c_does_not_wait(capsys):
    stop = Stop()
    stop.on(signal.SIGTERM, None)
    stop.on(signal.SIGTERM, None)
    assert stop.is_set() and stop.number == signal.SIGTERM
    assert capsys.readouterr().err == "stopping …\n"
    with pytest.raises(KeyboardInterrupt):
        stop.on(signal.SIGINT, None)


def test_work_is_waited_for_and_keeps_its_result_or_its_error():
    done = Work(lambda: 7)
    done.wait(until=lambda: False)
    assert (done.result, done.error) == (7, None)
    failed = Work(lambda: 1 // 0)
    failed.wait(until=lambda: False)
    assert isinstance(failed.error, ZeroDivisionError)


def test_py4js_tracebacks_of_what_it_raises_are_not_printed(caplog):
    record = logging.LogRecord("root", logging.ERROR, "/packages/py4j/java_gateway.py", 1, "lost", None, None)
    with terminable():
        logging.getLogger().handle(record)
        logging.getLogger("py4j.clientserver").error("lost")
        logging.getLogger().error("mine")
    logging.getLogger("py4j.clientserver").error("later")
    assert caplog.messages == ["mine", "later"]
