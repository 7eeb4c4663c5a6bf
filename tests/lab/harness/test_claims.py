import re

import pytest

from pathcast_lab.harness import Claim, MissingRowError, Rows, Verdict, every, experiments, judged

ROWS = Rows([{"engine": "a", "ms": 2.0}])


@pytest.mark.parametrize(
    ("holds", "verdict"), [(True, Verdict.HELD), (False, Verdict.NOT_HELD), (None, Verdict.NOT_MEASURABLE)]
)
def test_a_claim_comes_to_one_of_three_states(holds: bool | None, verdict: Verdict) -> None:
    judgement = Claim("it is so", "target", lambda rows: judged(holds, "2 ms")).judge_rows(ROWS)
    assert (judgement.verdict, judgement.measured) == (verdict, "2 ms")


def test_a_claim_about_a_rival_that_did_not_run_is_not_measurable() -> None:
    claim = Claim("b is faster than a", "paper", lambda rows: judged(rows.number("ms", engine="b") < 2, "…"))
    assert claim.judge_rows(ROWS).verdict is Verdict.NOT_MEASURABLE
    assert claim.judge_rows(ROWS).measured == "no row has engine = b"


def test_a_fault_in_a_judge_is_not_taken_for_a_missing_row() -> None:
    claim = Claim("…", "paper", lambda rows: judged(rows[0]["no such column"] == 1, "…"))
    with pytest.raises(KeyError):
        claim.judge_rows(ROWS)


@pytest.mark.parametrize(
    ("found", "verdict", "measured"),
    [
        ({"at 1": 3.0, "at 2": 5.0, "at 3": 4.0}, Verdict.HELD, "worst 3.0 times at 1; best 5.0 times at 2"),
        ({"at 1": 2.9, "at 2": 5.0}, Verdict.NOT_HELD, "worst 2.9 times at 1; best 5.0 times at 2"),
        ({"at 1": 5.0, "at 2": 2.9, "at 3": 5.1}, Verdict.NOT_HELD, "worst 2.9 times at 2; best 5.1 times at 3"),
        ({"at 1": 3.0}, Verdict.HELD, "3.0 times at 1"),
        ({"at 1": 3.01, "at 2": 3.02}, Verdict.HELD, "3.0 times everywhere"),
    ],
)
def test_a_claim_holds_only_if_it_holds_at_every_place(
    found: dict[str, float], verdict: Verdict, measured: str
) -> None:
    judgement = every(found, "{:.1f} times", least=3)
    assert (judgement.verdict, judgement.measured) == (verdict, measured)


def test_a_figure_within_noise_decides_nothing_unless_another_fails() -> None:
    def verdict(**found: float) -> Verdict:
        return every(found, "{:.2f}", most=1, undecided=(0.97, 1.03)).verdict

    assert verdict(a=0.5, b=0.9) is Verdict.HELD
    assert verdict(a=0.5, b=1.01) is Verdict.NOT_MEASURABLE
    assert verdict(a=1.5, b=1.01) is Verdict.NOT_HELD


def test_a_figure_may_be_bounded_on_both_sides() -> None:
    assert every({"a": -0.05, "b": 0.1}, "{:.2f}", least=-0.1, most=0.1).verdict is Verdict.HELD
    judgement = every({"a": -0.3, "b": 0.2, "c": 0.0}, "{:.2f}", least=-0.1, most=0.1)
    assert (judgement.verdict, judgement.measured) == (Verdict.NOT_HELD, "worst -0.30 a; best 0.00 c")


def test_nothing_to_judge_is_a_missing_row() -> None:
    with pytest.raises(MissingRowError):
        every({}, "{}", least=1)


# What a paper says, and numbers of figures and tables, do not depend on the run.
FIXED = re.compile(r"the paper's .*?(?=[;.]( |$))|Figure \d+|Table \d+")
MEASURED = re.compile(
    r"\d|\b(twice|half a|a (quarter|third|tenth) of|tens|hundreds?|thousands?|(two|three|six|ten) times|th(e|is) run)\b"
)


def test_a_reason_may_be_made_from_what_was_measured() -> None:
    claim = Claim("…", "paper", lambda rows: judged(False, "…"), reason=lambda rows: f"{rows.number('ms'):g} ms.")
    assert claim.reason_on(ROWS) == "2 ms."
    assert claim.reason_on(Rows([])) == ""
    assert Claim("…", "paper", claim.judge, reason="It is late.").reason_on(ROWS) == "It is late."


def measured_in(reason: str) -> str:
    """The parts of a reason that only a measurement can show."""
    found = MEASURED.search(FIXED.sub("", reason))
    return found[0] if found else ""


def test_a_reason_gives_a_cause_and_no_measured_figure() -> None:
    """A reason appears with every run in which its claim does not hold; a figure in it would be another run's.

    Reasons that are made from the rows of a run may have its figures.
    """
    reasons = {claim.reason for one in experiments() for claim in one.claims if isinstance(claim.reason, str)}
    assert {reason: measured_in(reason) for reason in reasons if measured_in(reason)} == {}


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("A visit takes 10 ns.", "1"),
        ("A visit takes about six times as long.", "six times"),
        ("Some hundreds of queries match.", "hundreds"),
        ("The machine was busy during the run shown.", "the run"),
        ("A visit is short; the paper's took 18 ms for 90,000 queries.", ""),
        ("Ratings are further apart than in Figure 6.", ""),
    ],
)
def test_figures_in_reasons_are_found(reason: str, found: str) -> None:
    assert measured_in(reason) == found
