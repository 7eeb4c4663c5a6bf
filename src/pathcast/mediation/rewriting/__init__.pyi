from .element_array_rewriter import EventRewriter as EventRewriter
