"""Workloads of the papers: course catalogues, tables and standing joins, random schemas, steered matches."""

from .first_match_position import (
    documents_of_size,
    joined_document,
    steered_documents,
    steered_subscriptions,
)
from .join_workloads import ALIKE, DENSE, STAR, JoinBatch, JoinSetting, JoinWorkload, binary_joins, stock_joins
from .multiway_joins import mixed_joins, star_joins
from .random_schemas import generate_schema, generate_schemas, mixed_documents

__all__ = [
    "ALIKE",
    "DENSE",
    "STAR",
    "JoinBatch",
    "JoinSetting",
    "JoinWorkload",
    "binary_joins",
    "documents_of_size",
    "generate_schema",
    "generate_schemas",
    "joined_document",
    "mixed_documents",
    "mixed_joins",
    "star_joins",
    "steered_documents",
    "steered_subscriptions",
    "stock_joins",
]
