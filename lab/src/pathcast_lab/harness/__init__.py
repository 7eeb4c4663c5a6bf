"""Experiments: measurements that set a claim beside what this machine shows, and write it down.

`README.md` of this room shows how to write one.
"""

from .claims import Claim, Judgement, Verdict, judged
from .experiment_runner import default_output, perform, run_experiment
from .measured_process import Outcome, in_fresh_process
from .plots import Plot
from .registry import SCALES, Experiment, UnknownExperimentError, experiment, experiments, find
from .result import Result
from .rows import MissingRowError, Row, Rows
from .run import CheckError, Observer, Run
from .timing import Ratio, Timing, race, ratio

__all__ = [
    "SCALES",
    "CheckError",
    "Claim",
    "Experiment",
    "Judgement",
    "MissingRowError",
    "Observer",
    "Outcome",
    "Plot",
    "Ratio",
    "Result",
    "Row",
    "Rows",
    "Run",
    "Timing",
    "UnknownExperimentError",
    "Verdict",
    "default_output",
    "experiment",
    "experiments",
    "find",
    "in_fresh_process",
    "judged",
    "perform",
    "race",
    "ratio",
    "run_experiment",
]
