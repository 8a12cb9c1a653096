"""Names of GPU architectures by the number that DCGM and NVML report, for the label `architecture`.

DCGM (`dcgmChipArchitecture_t` of dcgm_structs.h) has the numbers of NVML (`NVML_DEVICE_ARCH_…` of nvml.h) on purpose.
NVML's 11, 12 and 15 are no GPUs.
"""

NAMES = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}


def architecture_name(number: int) -> str:
    """The architecture in lower case; empty for a number that is not known."""
    return NAMES.get(number, "")
