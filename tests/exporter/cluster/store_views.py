"""Views of stores as after a first list."""

import json

from exporter.cluster.kubernetes.watching.kinds import object_kinds
from exporter.cluster.kubernetes.watching.store import ObjectStore
from tests.exporter.cluster.fixture import GPUS


def listed(now, **objects):
    """The views of all stores after these objects were listed, by kind; a kind that is not given may not be read."""
    views = []
    for kind in object_kinds(GPUS):
        store = ObjectStore(kind.name, lambda: now, lambda: 0.0, kind.optional)
        if kind.name in objects:
            body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": objects[kind.name]}).encode()
            page = kind.codec.page(body)
            assert page.malformed == []
            store.replace(page.records, 0.0)
        views.append(store.view(60.0))
    return tuple(views)
