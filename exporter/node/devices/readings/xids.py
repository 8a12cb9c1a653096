"""XIDs, the driver's error codes of a GPU: what they mean in a few words, and which of them are critical. No I/O.

The codes are those of NVIDIA's XID catalog; the words are ours.
"""

import math
from collections.abc import Mapping

NO_XID = 0
"""The code on a GPU that has had no XID."""

CRITICAL = (48, 62, 64, 74, 79, 95, 119, 120)
"""Codes after which the GPU cannot be used until it is reset, repaired or replaced. Their counters begin at 0, so few:
each of them is a series on every GPU."""

UNKNOWN = "Unknown Error"
"""What dcgm-exporter writes for a code without a text."""

TEXTS: Mapping[int, str] = {
    NO_XID: "No Error",
    **dict.fromkeys((1, 2, 6, 11, 25, 32), "Invalid command stream"),
    8: "GPU stopped processing",
    9: "Driver error while programming the GPU",
    12: "Driver error while handling an exception",
    13: "Exception of the graphics engine",
    16: "Display engine hung",
    18: "Bus mastering is off in the PCI configuration",
    24: "Timeout of a GPU semaphore",
    26: "Timeout of the framebuffer",
    **dict.fromkeys((27, 28, 34, 35, 36, 42, 47, 60, 65), "Exception of the video processor"),
    30: "Error in the access to a GPU semaphore",
    31: "Page fault of GPU memory",
    33: "Internal microcontroller error",
    37: "Driver firmware error",
    38: "Driver firmware error",
    43: "GPU stopped processing a channel",
    44: "Fault of the graphics engine in a context switch",
    45: "Channel removed after earlier errors",
    46: "GPU stopped processing",
    48: "Double-bit ECC error",
    54: "Auxiliary power is not connected",
    56: "Display engine error",
    57: "Error while programming the memory interface",
    58: "Memory interface is unstable",
    61: "Internal microcontroller warning",
    62: "Internal microcontroller halted",
    63: "Memory page retired or row remapped",
    64: "Memory page could not be retired or row not remapped",
    66: "Illegal access by the driver",
    67: "Illegal access by the driver",
    **dict.fromkeys((68, 83, 84, 88, 89, 96, 97, 98), "Exception of a video decoder"),
    69: "Class error of the graphics engine",
    **dict.fromkeys((70, 71, 72, 75, 76, 77, 85), "Exception of a copy engine"),
    73: "Exception of a video encoder",
    74: "NVLink error",
    78: "vGPU could not start",
    79: "GPU has fallen off the bus",
    80: "Corrupted data sent to the GPU",
    81: "VGA subsystem error",
    82: "Exception of a JPEG decoder",
    86: "Exception of the optical flow accelerator",
    92: "High rate of single-bit ECC errors",
    93: "InfoROM is written too often",
    94: "Contained memory error",
    95: "Uncontained memory error",
    109: "Timeout of a context switch",
    110: "Security fault",
    119: "Timeout of a call to the GSP firmware",
    120: "GSP firmware error",
    121: "C2C link error",
    122: "Read from the SPI flash failed",
    123: "Write to the SPI flash failed",
    124: "Erase of the SPI flash failed",
    125: "InfoROM file system error",
    137: "NVLink access without permission",
    140: "Memory error that was not corrected",
    143: "GPU could not be initialized",
    **dict.fromkeys((144, 145, 146, 147, 148, 149, 150), "NVLink hardware error"),
    151: "Key rotation failed",
    154: "Recovery action of the GPU changed",
    155: "NVLink error reported by software",
    156: "Resource of the GPU retired",
    157: "Resource of the GPU could not be retired",
    158: "Fatal timeout of the GPU",
}


def text(code: float) -> str:
    """The words for a code; any number can come from a library."""
    return TEXTS.get(int(code), UNKNOWN) if math.isfinite(code) else UNKNOWN
