"""The harness: declare an experiment, run it, judge its claims, store rows and plots, and publish pages."""

from .claims import Claim, Judgement, Verdict, every, judged
from .experiment_parameters import ParameterError, as_dict, as_text, changed
from .experiment_registry import Experiment, UnknownExperimentError, experiment, experiments, find
from .experiment_result import Result
from .experiment_runner import default_output, default_publication, measured_before, perform, run_experiment
from .external_data_folder import nitf_documents
from .measured_process import in_fresh_process, peak_bytes, resident_bytes
from .publishing.plot_declarations import PaperPoint, Plot, over_subscriptions
from .result_rows import MissingRowError, Row, Rows, Value, number_in
from .rival_line_protocol import RivalError, RivalProgram, check_matches, named_rivals
from .rival_timing import Timing, collector_paused, collector_watched, race, ratio
from .run_context import CheckError, Run

__all__ = [
    "CheckError",
    "Claim",
    "Experiment",
    "Judgement",
    "MissingRowError",
    "PaperPoint",
    "ParameterError",
    "Plot",
    "Result",
    "RivalError",
    "RivalProgram",
    "Row",
    "Rows",
    "Run",
    "Timing",
    "UnknownExperimentError",
    "Value",
    "Verdict",
    "as_dict",
    "as_text",
    "changed",
    "check_matches",
    "collector_paused",
    "collector_watched",
    "default_output",
    "default_publication",
    "every",
    "experiment",
    "experiments",
    "find",
    "in_fresh_process",
    "judged",
    "measured_before",
    "named_rivals",
    "nitf_documents",
    "number_in",
    "over_subscriptions",
    "peak_bytes",
    "perform",
    "race",
    "ratio",
    "resident_bytes",
    "run_experiment",
]
