"""Experiments on Spark: matching, joins, pipelines, publishing."""
