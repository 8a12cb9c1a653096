"""The engine's numbers of the devices, by which `--devices` selects GPU instances."""

from exporter.node.devices.entities.selection import Selection
from exporter.node.devices.series.gpu_selection import selected, selection_problems
from tests.exporter.node.dcgm.fixture import document, gpu_spec, instance_spec


def test_readings_have_the_number_of_each_device_and_a_gpu_instance_is_selected_by_it(engine_of):
    engine = engine_of(document(gpu_spec(0), gpu_spec(1, mig=True, instances=[instance_spec(1), instance_spec(5)])))
    readings = engine.settled(engine.source(150, 252))
    numbers = dict(zip([(each.index, each.gi) for each in readings.inventory], readings.engine_ids, strict=True))
    assert (numbers[0, -1], numbers[1, -1]) == (0, 1)
    assert numbers[1, 1] != numbers[1, 5]
    one = Selection(None, (numbers[1, 5],))
    chosen = [(readings.inventory[each].index, readings.inventory[each].gi) for each in selected(readings, one)]
    assert sorted(chosen) == [(1, -1), (1, 5)]
    assert list(selection_problems(readings, one)) == []
