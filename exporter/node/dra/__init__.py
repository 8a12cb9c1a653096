"""Dynamic resource allocation (DRA): which device a name in an allocated ResourceClaim is."""
