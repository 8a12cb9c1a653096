"""PromQL of hardware quantities that have no normalized series: clocks, memory errors, links. By GPU, in base units.

These are fields of DCGM, which an exporter exposes where its counters file lists them, under the name of either
generation. Some are not in the default file; the description of their panel says so. No I/O, no state.
"""

from dashboards.queries import GPU


def of_gpu(selection: str, *names: str, factor: str = "") -> str:
    """The value of a field of each GPU; `names` are its spellings, `factor` makes its unit a base unit."""
    series = " or ".join(f"{name}{{{selection}}}" for name in names)
    return f"max by ({GPU}) ({series}){factor}"


def grown(selection: str, window: str, *names: str) -> str:
    """How much a counter of each GPU has grown in the window, where it has."""
    series = " or ".join(f"increase({name}{{{selection}}}[{window}])" for name in names)
    return f"max by ({GPU}) ({series}) > 0"


def sm_clock(selection: str) -> str:
    return of_gpu(selection, "DCGM_FI_DEV_SM_CLOCK", factor=" * 1e6")


def memory_clock(selection: str) -> str:
    return of_gpu(selection, "DCGM_FI_DEV_MEM_CLOCK", factor=" * 1e6")


def nvlink_bytes(selection: str) -> str:
    """Bytes per second over all NVLinks of a GPU, in both directions."""
    return of_gpu(selection, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", factor=" * 1e6")


def pcie_sent(selection: str) -> str:
    return of_gpu(selection, "DCGM_FI_PROF_PCIE_TX_BYTES")


def pcie_received(selection: str) -> str:
    return of_gpu(selection, "DCGM_FI_PROF_PCIE_RX_BYTES")


def remapped(selection: str, *, corrected: bool) -> str:
    """Memory rows that were replaced by spare ones, after corrected errors or after others."""
    if corrected:
        return of_gpu(selection, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL")
    return of_gpu(selection, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL")


def remap_failed(selection: str) -> str:
    return of_gpu(selection, "DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_ROW_REMAP_FAILED")


def remap_pending(selection: str) -> str:
    return of_gpu(selection, "DCGM_FI_DEV_ROW_REMAP_PENDING")


def recovery_action(selection: str) -> str:
    """What makes the GPU usable again, as DCGM numbers it: `states.RECOVERY`."""
    return of_gpu(selection, "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "DCGM_FI_DEV_GPU_RECOVERY_ACTION")


def ecc_errors(selection: str) -> str:
    """Memory errors that could not be corrected, since the driver was loaded."""
    return of_gpu(selection, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")


def pcie_replays(selection: str, window: str) -> str:
    return grown(selection, window, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL")


def nvlink_errors(selection: str, window: str) -> str:
    """Packets with a wrong checksum on all NVLinks of a GPU."""
    return grown(
        selection, window, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL"
    )


def narrow_links(selection: str) -> str:
    """PCIe lanes in use of GPUs that could use more."""
    most = of_gpu(selection, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH")
    return f"{of_gpu(selection, 'DCGM_FI_DEV_PCIE_LINK_WIDTH')} < on ({GPU}) {most}"
