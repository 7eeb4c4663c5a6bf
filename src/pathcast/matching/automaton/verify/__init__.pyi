from .candidate_verifier import Verifier as Verifier
from .condition_table import Conditions as Conditions
