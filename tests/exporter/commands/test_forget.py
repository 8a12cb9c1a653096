"""`gpugauge forget` takes one GPU out of a state file, or says in one message why it cannot."""

import pytest

from exporter import cli
from exporter.commands.forget import forget
from exporter.config import ConfigError
from exporter.node.devices.computed.device_state import DeviceState
from exporter.node.state_file.content import DeviceSeconds, RememberedGpu, RememberedNode
from exporter.node.state_file.file import StateFile


def state_of(*numbers):
    gpus = tuple(RememberedGpu(f"GPU-{n}", n) for n in numbers)
    seconds = (DeviceSeconds(gpu.uuid, gi, -1, "", {DeviceState.BUSY: 1.5}) for gpu in gpus for gi in (1, 2))
    return RememberedNode(gpus, simulated=True, devices=tuple(seconds))


STATE = state_of(0, 1, 2)


@pytest.fixture
def path(tmp_path):
    file = StateFile(tmp_path / "state.json")
    file.read()
    file.write(STATE)
    return file.path


def run(*words, **environment):
    return forget(cli.parse(["forget", *words], environment))


def left(path):
    return sorted(StateFile(path).read().uuids)


def test_the_gpu_is_taken_out_and_everything_else_stays(path):
    assert "GPU-1 is forgotten" in run("--state-file", str(path), "GPU-1")
    assert StateFile(path).read() == state_of(0, 2)


def test_the_uuid_may_come_first_and_the_file_from_the_variable(path):
    run("GPU-0", "--state-file", str(path))
    run("GPU-2", GPUGAUGE_STATE_FILE=str(path))
    assert left(path) == ["GPU-1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("GPU-9", "--state-file", "{path}"), "{path} has no GPU 'GPU-9'; it has GPU-0, GPU-1, GPU-2"),
        (("--state-file", "{path}"), "forget needs the UUID of one GPU, and was given nothing"),
        (("GPU-1", "GPU-2", "--state-file", "{path}"), "was given GPU-1 GPU-2"),
        (("GPU-1",), "no state file is named: give --state-file (variable GPUGAUGE_STATE_FILE)"),
        (("GPU-1", "--state-file", "{path}.other"), "{path}.other: there is no such state file"),
        (("GPU-1", "--state-file", "/"), "/ cannot be read: it is a directory"),
        (("GPU-1", "--statefile"), "unknown flag '--statefile'"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_changes_nothing(path, words, message):
    with pytest.raises(ConfigError) as error:
        run(*(word.format(path=path) for word in words))
    assert message.format(path=path) in str(error.value)
    assert "\n" not in str(error.value)
    assert left(path) == ["GPU-0", "GPU-1", "GPU-2"]


def test_after_two_dashes_a_word_is_no_flag(path):
    with pytest.raises(ConfigError, match="has no GPU '--help'"):
        run("--state-file", str(path), "--", "--help")
