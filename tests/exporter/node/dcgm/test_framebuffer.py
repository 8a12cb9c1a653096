"""A framebuffer of 0 MiB through DCGM, seen while a driver is being loaded: as absent as with NVML."""

import pytest

from exporter.node.devices.fields.field_ids import FRAMEBUFFER
from tests.exporter.node.dcgm.fixture import document, gpu_spec, rejected, samples_of_gpu

ZEROS = {"250": 0, "251": 0, "252": 0, "253": 0, "150": 40}


def test_a_gpu_whose_framebuffer_is_0_has_none_of_its_amounts_and_the_other_has_all(engine_of):
    engine = engine_of(document(gpu_spec(0, fields=ZEROS), gpu_spec(1)))
    readings = engine.source(*FRAMEBUFFER, 150).read()
    assert samples_of_gpu(readings, 0) == {150: 40}
    assert set(samples_of_gpu(readings, 1)) == {*FRAMEBUFFER[:3], FRAMEBUFFER[4], 150}
    assert rejected(readings)[250, "not_supported"] == 1


@pytest.mark.parametrize("fields", [(251, 252), (251, 252, 253)])
def test_so_it_is_where_the_size_is_not_read(engine_of, fields):
    engine = engine_of(document(gpu_spec(0, fields=ZEROS)))
    assert samples_of_gpu(engine.source(*fields, 150).read()) == {150: 40}
