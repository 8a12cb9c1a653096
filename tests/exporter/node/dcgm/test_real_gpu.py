"""On a machine with a GPU and DCGM: plausible values from the real library."""

import os
import shutil

import pytest

from exporter.node.dcgm.source import DcgmSource
from exporter.node.devices.fields.device_source import ReaderConfig
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import samples, wanted


@pytest.fixture
def source():
    if not os.path.exists("/dev/nvidiactl"):  # noqa: PTH110 - a device node
        pytest.skip("no GPU: /dev/nvidiactl is not there")
    if shutil.which("nv-hostengine") is None:
        pytest.skip("DCGM is not installed: nv-hostengine is not on the path")
    source = DcgmSource(ReaderConfig("dcgm", wanted(150, 155, 250, 252, 1001, 1004), 1.0))
    yield source
    source.close()


@pytest.mark.gpu
def test_a_real_gpu_has_a_uuid_a_temperature_and_memory(source):
    try:
        readings = source.read()
    except SourceError as error:
        if error.reason == "library_missing":
            pytest.skip(str(error))
        raise
    assert readings.inventory
    assert all(device.uuid.startswith("GPU-") for device in readings.inventory)
    exposed = samples(readings)
    assert all(5 < value < 110 for key, value in exposed.items() if key[3] == 150)
    assert any(key[3] == 250 for key in exposed)
