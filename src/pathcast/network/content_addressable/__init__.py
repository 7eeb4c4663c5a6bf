"""A content-addressable network: filters are points of a space that is divided into zones, owned by nodes."""
