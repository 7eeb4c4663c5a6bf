"""Engines of the literature, each as its paper describes it, behind the same contract as the default engine."""
