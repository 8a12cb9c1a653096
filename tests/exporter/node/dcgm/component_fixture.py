"""Scenarios with components, and what readings have of them."""

from tests.exporter.node.dcgm.fixture import document, gpu_spec

TEMPERATURE, FIRMWARE, TX, CRC_ERRORS, SXID = 858, 1524, 861, 787, 857
CPU_POWER, VENDOR, UTILIZATION, CLOCK = 1130, 1140, 1100, 1120
OF_SWITCHES, OF_SWITCH_LINKS = (TEMPERATURE, TX), (780, CRC_ERRORS)
VERSIONS = {"dcgm": "4.6.0"}


def switch_spec(number, *states, **more):
    """An NVSwitch with a link for each of these states."""
    links = [
        {"number": n, "state": state, "fields": {"780": 1000 * number + n, str(CRC_ERRORS): n}}
        for n, state in enumerate(states)
    ]
    fields = {str(TEMPERATURE): 50 + number, str(TX): 10**6 + number}
    return {"number": number, "fields": fields, "nvlinks": links} | more


def cpu_spec(number, *cores, **more):
    """A Grace CPU with these cores."""
    own = [{"number": n, "fields": {str(UTILIZATION): n / 1000, str(CLOCK): 3_400_000 + n}} for n in cores]
    fields = {str(CPU_POWER): 200.0 + number, str(VENDOR): "Nvidia"}
    return {"number": number, "serial": f"00A{number}", "fields": fields, "cores": own} | more


def switched(*switches, gpus=2, **more):
    """A document with that many GPUs and these NVSwitches."""
    return document(*map(gpu_spec, range(gpus)), switches=list(switches), **({"versions": VERSIONS} | more))


def of_components(readings):
    """Return every exposed value by (component, field)."""
    exposed = {}
    for batch in readings.component_batches:
        for field, column in zip(batch.fields, batch.columns, strict=True):
            for position, value in zip(batch.devices, column, strict=True):
                key = (readings.components[position], field)
                assert key not in exposed
                if value is not None:
                    exposed[key] = value
    return exposed
