from .document_nodes import OutOfWorkError as OutOfWorkError
from .engine_answers import decided as decided
from .engine_answers import decided_stream as decided_stream
from .engine_answers import shared_decided as shared_decided
from .expression_compiler import CompiledExpression as CompiledExpression
from .node_places import FoundNodes as FoundNodes
from .opaque_patterns import NodesOfBatch as NodesOfBatch
from .opaque_patterns import OpaquePatterns as OpaquePatterns
