from .streaming_engine_frame import Arrays as Arrays
from .streaming_engine_frame import DelegatedPatterns as DelegatedPatterns
