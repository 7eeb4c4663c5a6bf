"""The experiments on the broker, very small: all rows are there, rivals that are missing are named."""

from pathlib import Path

import pytest

from pathcast_lab.broker import activemq_server, jetstream_server
from pathcast_lab.broker.interleaved_server_runs import OURS, Work, in_turn, rate_rows
from pathcast_lab.broker.server_process import ServerError
from pathcast_lab.harness import CheckError, Run, Verdict, find, perform

SMALL = {
    "broker-publishing": [
        "documents=64", "rounds=1", "subscriptions=200", "matches=5", "receivers=100", "connections=8",
    ],
    "broker-deliveries": [
        "subscriptions=50", "documents=64", "rival_documents=2", "readers=2", "events=64", "rounds=1",
        "seconds=0.2", "idle=12",
    ],
    "broker-restart": ["subscriptions=300", "documents=10000", "restarts=1", "more=2"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_an_experiment_measures_all_its_parts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activemq_server, "HOME", Path("/nowhere"))  # its Java takes seconds to start
    result = perform(find([name])[0], changes=SMALL[name])
    parts = {
        "broker-publishing": ["durable", "requests", "matches"],
        "broker-deliveries": ["end to end", "fan-out", "latency", "idle readers"],
        "broker-restart": ["bulk creation", "one more", "restart"],
    }[name]
    assert result.rows.distinct("part") == parts
    for claim in find([name])[0].claims:
        reason = claim.reason_on(result.rows)
        assert reason or isinstance(claim.reason, str) or "ActiveMQ" in claim.statement
        assert not reason or (reason.endswith(".") and ". " not in reason)
    missing = [claim.statement for claim in result.claims if claim.verdict is Verdict.NOT_MEASURABLE]
    if name == "broker-deliveries":
        assert any("apt-get install activemq" in note for note in result.notes)
        assert len(missing) == 1 and "ActiveMQ" in missing[0]
    else:
        assert missing == []


def test_activemq_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activemq_server, "HOME", tmp_path)
    assert not activemq_server.is_installed()
    with pytest.raises(ServerError, match="apt-get install activemq"):
        activemq_server.activemq_server(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("always", [True, False])
def test_jetstream_stores_every_batch(tmp_path: Path, *, always: bool) -> None:
    with jetstream_server.jetstream_server(tmp_path, "server", always=always) as server:
        assert jetstream_server.publish_batches(server.port, [b"<a/>"] * 130, 64) > 0
        assert jetstream_server.publish_batches(server.port, [b"<a/>"] * 3, 64) > 0


def test_rates_and_ratios_come_from_the_rounds() -> None:
    ours, theirs = [Work(0.5, 0.2, 0.1), Work(1.0, 0.2, 0.1)], [Work(2.0, 0.4, 0.1), Work(3.0, 0.4, 0.1)]
    first, second = rate_rows("p", {OURS: ours, "theirs": theirs}, 100, how="h")
    assert (first["rate"], first["times"], first["how"]) == (100 / 0.75, 1.0, "h")
    assert (second["times"], second["low"], second["high"], second["cpu_times"]) == (3.5, 3.0, 4.0, 2.0)


def test_rivals_take_turns_after_a_round_that_does_not_count() -> None:
    order: list[str] = []

    def rival(name: str) -> Work:
        order.append(name)
        return Work(len(order), 0, 0)

    done = in_turn(Run(scale="small", seed=0), {"a": lambda: rival("a"), "b": lambda: rival("b")}, 2)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert [each.seconds for each in done["a"]] == [4, 5]


def test_a_duplicate_ends_the_run() -> None:
    from pathcast_lab.broker.interleaved_server_runs import check_accepted
    from pathcast_lab.broker.load_generator import Answers

    run = Run(scale="small", seed=0)
    check_accepted(run, Answers(1.0, 0.1, {202: 2}), 2)
    with pytest.raises(CheckError, match="no publication is a duplicate"):
        check_accepted(run, Answers(1.0, 0.1, {202: 2}, 64), 2)
    with pytest.raises(CheckError, match="all publications are accepted"):
        check_accepted(run, Answers(1.0, 0.1, {202: 1, 429: 1}), 2)
