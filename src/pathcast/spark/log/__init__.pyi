from .backfill import Round as Round
from .backfill import run_backfill as run_backfill
from .log_options import LogOptions as LogOptions
from .log_options import parse_log_options as parse_log_options
