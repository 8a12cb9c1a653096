"""The form of the state file, and what is wrong with one that cannot be used."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.devices.computed.device_state import DeviceState
from exporter.node.devices.entities.device import Device
from exporter.node.state_file.content import (
    MAX_GPUS,
    DeviceSeconds,
    RememberedGpu,
    RememberedNode,
    decode,
    device,
    encode,
    remembered,
)
from exporter.node.state_file.reasons import StateFileError

GPU = Device("GPU-1", 3, "00000000:07:00.0", 3, "NVIDIA H100", serial="165", architecture="hopper", numa_node=1)
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
GPUS = st.builds(
    RememberedGpu,
    TEXT.filter(bool),
    st.integers(0, 99),
    TEXT,
    st.integers(-1, 99),
    TEXT,
    TEXT,
    TEXT,
    st.integers(-1, 9),
)


SECONDS = st.builds(
    DeviceSeconds,
    *(TEXT.filter(bool), st.integers(-1, 14), st.integers(-1, 7), TEXT),
    st.dictionaries(st.sampled_from(DeviceState), st.floats(0, 1e12)),
)


@given(
    st.builds(
        RememberedNode,
        st.lists(GPUS, max_size=4).map(tuple),
        st.booleans(),
        st.lists(SECONDS, max_size=4).map(tuple),
    )
)
def test_what_is_written_is_read(state):
    assert decode(encode(state)) == state


def test_a_gpu_is_remembered_with_its_identity_and_nothing_that_a_driver_update_changes():
    driven = Device(*(getattr(GPU, name) for name in GPU.__struct_fields__[:5]), driver_version="570", mig_enabled=True)
    (found,) = (device(gpu) for gpu in remembered([GPU]))
    assert found == GPU
    (found,) = (device(gpu) for gpu in remembered([driven]))
    assert (found.uuid, found.driver_version, found.mig_enabled) == (GPU.uuid, "", None)


def test_the_order_of_the_gpus_does_not_change_the_content_and_their_number_is_bounded():
    many = [Device(f"GPU-{n:04}", n, "", -1, "NVIDIA H100") for n in range(MAX_GPUS + 10)]
    assert remembered(many) == remembered(reversed(many))
    assert len(remembered(many)) == MAX_GPUS
    assert len(decode(encode(RememberedNode(remembered(many)))).gpus) == MAX_GPUS


DEVICE = {"uuid": "GPU-1", "gi": -1, "ci": -1, "profile": ""}


def changed(**state):
    """The content of a file with these changes."""
    content = json.loads(encode(RememberedNode(remembered([GPU]))))
    content["state"] |= state
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated"),
        (encode(RememberedNode(remembered([GPU])))[:-20], "truncated"),
        (b"\x00\xff", "invalid character"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"state": {}}', "missing required field `version`"),
        (b'{"version": 2, "something": "new"}', "its version is 2, not 1"),
        (b'{"version": 1}', "missing required field `state`"),
        (changed(gpus=[{"index": 0}]), "missing required field `uuid` - at `$.state.gpus[0]`"),
        (changed(gpus=[{"uuid": "", "index": 0}]), "length >= 1 - at `$.state.gpus[0].uuid`"),
        (changed(gpus=[{"uuid": "GPU-1", "index": "0"}]), "Expected `int`, got `str` - at `$.state.gpus[0].index`"),
        (changed(gpus=[{"uuid": f"GPU-{n}", "index": n} for n in range(MAX_GPUS + 1)]), "length <= 1024"),
        (changed(devices=[{**DEVICE, "seconds": {"busy": -1.0}}]), ">= 0.0 - at `$.state.devices[0].seconds[...]`"),
        (changed(devices=[{**DEVICE, "seconds": {"happy": 1.0}}]), "Invalid enum value 'happy'"),
        (encode(RememberedNode()).replace(b"[]", b"[NaN]"), "invalid character"),
        (b'{"version": 1, "state": {"gpus": [{"uuid": "\xff", "index": 0}]}}', "UTF-8"),
    ],
)
def test_a_content_that_cannot_be_used_is_one_message_with_the_place(content, message):
    with pytest.raises(StateFileError) as error:
        decode(content)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.reason == "unreadable"
