from .plain_path_encoder import PathEncoder as PathEncoder
from .plain_path_encoder import Steps as Steps
from .plain_path_encoder import normalised as normalised
from .plain_path_encoder import path_text as path_text
from .plain_path_encoder import pattern_of as pattern_of
from .xpath_parser import MAX_STEPS as MAX_STEPS
from .xpath_parser import parse_printed as parse_printed
