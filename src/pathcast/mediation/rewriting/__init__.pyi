from .event_rewriter import EventRewriter as EventRewriter
