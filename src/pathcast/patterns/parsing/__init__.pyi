from .plain_paths import PathEncoder as PathEncoder
from .plain_paths import Steps as Steps
from .plain_paths import normalised as normalised
from .plain_paths import path_text as path_text
from .plain_paths import pattern_of as pattern_of
from .xpath_parser import MAX_STEPS as MAX_STEPS
from .xpath_parser import parse_printed as parse_printed
