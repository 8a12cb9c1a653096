"""Lists all objects of a kind, page by page."""

from collections.abc import Iterator

from exporter.cluster.kubernetes.watching.api import ApiError, KubernetesApi
from exporter.cluster.kubernetes.watching.decode import ListPage
from exporter.cluster.kubernetes.watching.kinds import ObjectKind
from exporter.cluster.kubernetes.watching.reasons import WatchReason


def pages(api: KubernetesApi, kind: ObjectKind, path: str, size: int) -> Iterator[ListPage]:
    """Request and yield the pages of a list; the API server takes all of them from one resource version.

    Raises ApiError when a request fails or the last page has no resource version.
    """
    query = {**kind.query, "limit": str(size)}
    while True:
        page = kind.codec.page(api.page(path, query))
        if not page.continue_token and not page.resource_version:
            raise ApiError(WatchReason.BAD_RESPONSE, f"a list of {kind.name} has no resourceVersion")
        yield page
        if not page.continue_token:
            return
        query["continue"] = page.continue_token
