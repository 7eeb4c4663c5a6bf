"""Which documents each subscription gets: matches by pattern, the search for deliveries, and their leases."""
