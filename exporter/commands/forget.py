"""`gpugauge forget`: takes a GPU that will not come back out of the state file, so that it is no longer expected.

A running exporter takes the change up with its next collection.
"""

from pathlib import Path

import msgspec

from exporter.config import Arguments, ConfigError
from exporter.node.state_file.file import StateFile
from exporter.node.state_file.reasons import StateFileError

ATTEMPTS = 5
"""How often to begin anew when the exporter writes the file at the same moment."""


def forget(arguments: Arguments) -> str:
    """Forget the GPU whose UUID is the operand; return a message. Raises ConfigError when that cannot be done."""
    uuid, path = _uuid(arguments), arguments.state_file
    if not path:
        raise ConfigError("no state file is named: give --state-file (variable GPUGAUGE_STATE_FILE)")
    file = StateFile(Path(path))
    try:
        if not any(_forgotten(file, uuid) for _ in range(ATTEMPTS)):
            raise ConfigError(f"{path} is being written again and again by others")
    except StateFileError as error:
        raise ConfigError(str(error)) from None
    return f"{uuid} is forgotten; an exporter that can still read it remembers it again\n"


def _uuid(arguments: Arguments) -> str:
    if len(arguments.operands) != 1:
        given = " ".join(arguments.operands) or "nothing"
        raise ConfigError(f"forget needs the UUID of one GPU, and was given {given}; see gpugauge forget --help")
    return str(arguments.operands[0])


def _forgotten(file: StateFile, uuid: str) -> bool:
    """Write the file without this GPU; False when somebody else has changed it meanwhile."""
    state = file.read()
    if state is None:
        raise ConfigError(f"{file.path}: there is no such state file")
    if uuid not in state.uuids:
        known = ", ".join(sorted(state.uuids)) or "none"
        raise ConfigError(f"{file.path} has no GPU {uuid!r}; it has {known}")
    gpus = tuple(gpu for gpu in state.gpus if gpu.uuid != uuid)
    devices = tuple(device for device in state.devices if device.uuid != uuid)
    return file.write(msgspec.structs.replace(state, gpus=gpus, devices=devices))
