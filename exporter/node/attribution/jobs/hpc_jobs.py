"""Attributes devices to the jobs of an HPC scheduler. No I/O, no state.

In: the jobs by file, and the devices. Out: the job of each device that one job has alone, and a family of all pairs. A
device of several jobs has no label, as a shared device has no pod: its values are those of all of them together.
"""

from collections.abc import Mapping, Sequence

from exporter.metric import Family, Kind, LabelPairs, metric
from exporter.node.devices.entities.device import Device
from exporter.node.devices.series.labels import INSTANCE_IDS, instance_ids

LABEL = "hpc_job"
JOB_INFO = metric(
    "gpugauge_hpc_job_info",
    Kind.GAUGE,
    "Constant 1; one per device and HPC job that a file maps it to, alone or shared.",
    "gpu",
    "UUID",
    *INSTANCE_IDS,
    LABEL,
    "node",
    optional=(*INSTANCE_IDS, "node"),
)
METRICS = (JOB_INFO,)

Jobs = Mapping[str, tuple[str, ...]]
"""The jobs by the name of the file: index of a GPU, or that and a GPU instance id with a dot between."""


def jobs_of(device: Device, jobs: Jobs) -> tuple[str, ...]:
    """The jobs of a device: of a MIG device those of its GPU instance, never those of its GPU."""
    return jobs.get(str(device.index) if device.gi < 0 else f"{device.index}.{device.gi}", ())


def with_job(rows: Sequence[LabelPairs], inventory: Sequence[Device], jobs: Jobs) -> list[LabelPairs]:
    """Add the label of its job to each device that one job has alone; `rows` are further labels, per device."""
    alone = [jobs_of(device, jobs) for device in inventory]
    return [(*row, (LABEL, own[0])) if len(own) == 1 else row for row, own in zip(rows, alone, strict=True)]


def job_info(inventory: Sequence[Device], jobs: Jobs, node: str) -> Family:
    """Make the family of all pairs of a device and a job."""
    return Family(
        JOB_INFO,
        [
            JOB_INFO.sample(1, gpu=str(device.index), UUID=device.uuid, **instance_ids(device), hpc_job=job, node=node)
            for device in inventory
            for job in jobs_of(device, jobs)
        ],
    )
