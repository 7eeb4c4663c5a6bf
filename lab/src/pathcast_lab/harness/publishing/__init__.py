"""Publishing: the plots, records and pages that results become."""
