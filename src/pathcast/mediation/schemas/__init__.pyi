from .schema_correspondence_pruning import doubtful as doubtful
from .schema_integration import integrate_with_doubts as integrate_with_doubts
from .similarity_flooding import nodes_of as nodes_of
