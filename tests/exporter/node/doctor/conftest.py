"""The fixture of a node in a short folder: the path of a unix socket has at most 107 bytes (unix(7))."""

import tempfile
from pathlib import Path

import pytest

from tests.exporter.node.doctor.nodes import NodeFolder


@pytest.fixture
def node():
    with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
        made = NodeFolder(Path(folder))
        yield made
        made.close()
