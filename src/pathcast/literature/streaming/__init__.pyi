from .streaming_engine_base import Arrays as Arrays
from .streaming_engine_base import DelegatedPatterns as DelegatedPatterns
