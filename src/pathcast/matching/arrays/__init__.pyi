from .ragged_arrays import part_of as part_of
