"""Asks the API server once for what it knows of this node's ResourceClaims."""

import time

from exporter.node.attribution.allocation import Allocations
from exporter.node.attribution.pods.claims import claims_of
from exporter.node.config import NodeConfig
from exporter.node.doctor.examination import DraExamination
from exporter.node.dra.reader import DraReader
from exporter.node.dra.resource_claims import WantedClaims
from exporter.node.service_account.reasons import ApiReason
from exporter.source import SourceError

_LOOK_SECONDS = 0.05


def known_claims(
    config: NodeConfig, seconds: float, kubelet: Allocations | SourceError | None
) -> DraExamination | None:
    """What is known once the API server has answered everything or failed, or after so many seconds."""
    if not config.dra:
        return None
    reader = DraReader(config.service_account, config.style.hostname)
    wanted = claims_of(() if kubelet is None or isinstance(kubelet, SourceError) else kubelet)
    end = time.monotonic() + seconds
    reader.start()
    try:
        while _unanswered(reader, wanted) and time.monotonic() < end:
            time.sleep(_LOOK_SECONDS)
        problems = tuple((kind, *found) for kind, found in reader.problems.items() if found)
        # Only now: the slices may have come between the last look at the claims and the one at the problems.
        return DraExamination(reader.knowledge(wanted), problems)
    finally:
        reader.close()


def _unanswered(reader: DraReader, wanted: WantedClaims) -> bool:
    claims = reader.knowledge(wanted).claims
    reasons = {problem[0] for problem in reader.problems.values() if problem}
    return ApiReason.CONNECTING in reasons or (not reasons and claims is not None and wanted.keys() > claims.keys())
