"""A content-addressable network: filters as points of a space that the nodes share out in zones."""
