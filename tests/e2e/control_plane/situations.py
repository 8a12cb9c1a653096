"""All situations."""

from tests.e2e.control_plane import (
    situations_claims,
    situations_gpus,
    situations_nodes,
    situations_volumes,
    situations_work,
)

ALL = (
    *situations_gpus.SITUATIONS,
    *situations_nodes.SITUATIONS,
    *situations_volumes.SITUATIONS,
    *situations_claims.SITUATIONS,
    *situations_work.SITUATIONS,
)
