from .candidate_verifier import Verifier as Verifier
from .shared_pattern_conditions import Conditions as Conditions
