import pytest

from pathcast_lab.harness import Claim, Rows, Verdict, judged

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
