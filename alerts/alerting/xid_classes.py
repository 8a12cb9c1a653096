"""Classes of XIDs, the driver's error codes: what each means for the GPU, and so who is told, and how soon.

As of 2026-11-30, from NVIDIA's XID catalog and its deployment guide, with the codes that the EKS node monitoring agent
and NVIDIA's device plugin treat otherwise. New driver branches add codes: one that is in no class is a warning.
"""

from collections.abc import Mapping
from enum import StrEnum


class XidClass(StrEnum):
    """What an XID means for the GPU."""

    CRITICAL = "critical"
    """The GPU or the node needs a reset, a repair or a replacement before it can be used."""
    WARNING = "warning"
    """It may have been contained: the GPU can be used, and is to be reset when it is free. So is any other code."""
    APPLICATION = "application"
    """A fault of the program that used the GPU, or the end of one: no hardware is broken."""
    RECORD = "record"
    """Of no use alone: another alert has what it stands for, or it is written for support."""


XID_CLASSES: Mapping[XidClass, tuple[int, ...]] = {
    XidClass.CRITICAL: (46, 48, 54, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158),
    XidClass.WARNING: (56, 57, 58, 61, 94, 109, 144, 145, 146, 147, 148, 149, 150),
    XidClass.APPLICATION: (8, 11, 13, 25, 31, 32, 45, 68, 69),
    XidClass.RECORD: (43, 44, 63, 92, 137, 154, 157, 171, 172),
}
"""Codes by class. 63: a row was remapped, which the alerts on row remaps tell. 154: GPURecoveryActionRequired tells
which action. 171 and 172 tell in which memory an error of 48, 63, 94 or 95 was."""


def class_of(code: int) -> XidClass:
    """The class of a code; a code that no class lists is a warning, so that a new one is not overlooked."""
    return next((name for name, codes in XID_CLASSES.items() if code in codes), XidClass.WARNING)
