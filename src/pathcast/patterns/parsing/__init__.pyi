from .parse import MAX_STEPS as MAX_STEPS
from .parse import parse_printed as parse_printed
from .plain_paths import PathEncoder as PathEncoder
from .plain_paths import Steps as Steps
from .plain_paths import normalised as normalised
from .plain_paths import path_text as path_text
from .plain_paths import pattern_of as pattern_of
