"""Framebuffer through NVML: amounts, the share of what is used, and GPUs without memory of their own."""

from msgspec.structs import replace

from exporter.node.devices.fields import field_ids
from exporter.node.devices.fields.field_ids import FRAMEBUFFER
from exporter.node.simulation.scenario import Scenario, load
from tests.exporter.node.nvml.fixture import column, counted


def with_memory(**mib):
    """The scenario `whole` with these amounts of framebuffer on its first GPU."""
    document = load("whole").document
    first, *others = document.devices
    fields = {**first.fields, **{f"DCGM_FI_DEV_FB_{name}": value for name, value in mib.items()}}
    return Scenario("whole", replace(document, devices=(replace(first, fields=fields), *others)))


def test_a_total_of_zero_is_no_memory_and_not_an_empty_one(scenario_table, open_source):
    scenario_table(with_memory(TOTAL=0, FREE=0, USED=0, RESERVED=0))
    readings = open_source(*FRAMEBUFFER, 150).read()
    for field in FRAMEBUFFER:
        assert column(readings, field)[0] is None
        assert counted(readings, field) == {"not_supported": 1}
    assert None not in column(readings, 150)


def test_the_share_of_used_memory_is_that_of_what_can_be_allocated(scenario_table, open_source):
    scenario_table(with_memory(TOTAL=80_000, FREE=10_000, USED=30_000, RESERVED=40_000))
    assert column(open_source(*FRAMEBUFFER).read(), field_ids.FB_USED_RATIO)[0] == 30_000 / 40_000


def test_where_all_memory_is_reserved_there_is_no_share(scenario_table, open_source):
    scenario_table(with_memory(TOTAL=80_000, FREE=0, USED=0, RESERVED=80_000))
    readings = open_source(*FRAMEBUFFER).read()
    assert [column(readings, field)[0] for field in FRAMEBUFFER] == [80_000, 0, 0, 80_000, None]
