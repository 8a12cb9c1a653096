"""Loads NVIDIA's own Python bindings of DCGM, which a DCGM package installs outside of Python's folders.

Only the low level modules are loaded, not the object layer (`pydcgm`), which leaks connections and imports whatever is
called `logger`. They call the libdcgm that is loaded already, on the connection that is open already.
"""

import ctypes
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from exporter.node.dcgm.native.library import DcgmLibrary

FOLDERS: Mapping[int, Path] = {
    4: Path("/usr/share/datacenter-gpu-manager-4/bindings/python3"),
    3: Path("/usr/local/dcgm/bindings/python3"),
}
"""Where NVIDIA's packages have the bindings, by the major version of libdcgm that they fit."""


class Bindings(NamedTuple):
    """The modules that are used."""

    agent: ModuleType
    """`dcgm_agent`: one function per function of libdcgm."""
    structs: ModuleType
    """`dcgm_structs`: records, constants and the exception DCGMError."""
    error_names: Mapping[int, str]
    """The names of `dcgm_errors` by number, such as `DCGM_FR_NVLINK_DOWN`."""


class BindingsError(Exception):
    """The bindings cannot be loaded. The text is why, on one line."""


def load(library: DcgmLibrary, folder: str | None) -> Bindings:
    """Load the bindings from this folder, by default from where NVIDIA's packages have them. Raises BindingsError."""
    place = Path(folder) if folder is not None else FOLDERS[library.major]
    if not (place / "dcgm_agent.py").is_file():
        raise BindingsError(f"there is no dcgm_agent.py in {place}")
    # The modules import each other by their plain names. In front, because another module may have such a name; and
    # only for the import, so that nothing else in this folder can be taken for a module that is imported later.
    sys.path.insert(0, str(place))
    try:
        agent, structs, errors = map(importlib.import_module, ("dcgm_agent", "dcgm_structs", "dcgm_errors"))
        # Else the bindings would look for a libdcgm of their own, which is not connected.
        structs.dcgmLib = ctypes.CDLL(library.path)  # type: ignore[attr-defined]
    except Exception as error:  # whatever code of others raises costs the health checks alone
        raise BindingsError(f"the bindings in {place} cannot be loaded: {error!r}") from error
    finally:
        sys.path.remove(str(place))
    return Bindings(agent, structs, _error_names(errors))


def _error_names(errors: ModuleType) -> dict[int, str]:
    names = [name for name in vars(errors) if name.startswith("DCGM_FR_")]
    numbers = [(getattr(errors, name), name) for name in names]
    # Of two names for one number the first counts: the later ones are limits, or names of before.
    return {number: name for number, name in reversed(numbers) if isinstance(number, int)}
