"""What two nodes and a watcher expose: exclusive, idle and shared GPUs, MIG devices, and a pending workload.

Node `a` has a busy GPU, an idle one and one that two pods share; node `b` has one GPU with four GPU instances, of which
one is unallocated and one is shared by two compute instances.
"""

import re

POD = 'namespace="{ns}",pod="{pod}",container="main",gpu_namespace="{ns}",gpu_pod="{pod}",gpu_container="main"'


def pod(namespace, name):
    return POD.format(ns=namespace, pod=name)


def device(uuid, index, *, node="a", gi="", ci="", profile="1g.10gb"):
    instance = f',GPU_I_ID="{gi}",GPU_I_PROFILE="{profile}"' if gi else ""
    instance += f',GPU_CI_ID="{ci}"' if ci else ""
    return f'gpu="{index}",UUID="{uuid}",node="{node}"{instance}'


def allocated_pods(labels, number):
    return "gpugauge_device_allocated_pods{" + re.sub(r',GPU_I_PROFILE="[^"]*"', "", labels) + "} " + str(number)


def activity(labels, share, *, used=30_000, free=50_000):
    ids = re.sub(r'gpu="\d+",|,GPU_I_PROFILE="[^"]*"', "", labels)
    return [
        f'gpugauge_device_info{{{labels},model="NVIDIA-H100"}} 1',
        f"gpugauge_device_busy_ratio{{{ids}}} {share}",
        f"gpugauge_device_tensor_active_ratio{{{ids}}} {share / 2}",
        f"gpugauge_device_dram_active_ratio{{{ids}}} {share / 3}",
        f"gpugauge_device_memory_used_bytes{{{ids}}} {used}",
        f"gpugauge_device_memory_total_bytes{{{ids}}} {used + free}",
    ]


def gpu(labels, watts):
    ids = re.sub(r'gpu="\d+",', "", labels)
    return [
        f"gpugauge_gpu_power_watts{{{ids}}} {watts}",
        f"gpugauge_gpu_temperature_celsius{{{ids}}} 60",
        f"gpugauge_gpu_memory_temperature_celsius{{{ids}}} 70",
    ]


def health(node, now, observed=3):
    return [
        f'gpugauge_source_up{{source="dcgm",node="{node}"}} 1',
        f'gpugauge_source_problem{{source="dcgm",reason="profiling_unavailable",node="{node}"}} 1',
        f'gpugauge_source_read_duration_seconds{{source="dcgm",node="{node}"}} 0.004',
        f'gpugauge_rejected_values_total{{field="DCGM_FI_DEV_GPU_TEMP",reason="blank",node="{node}"}} 3',
        f'gpugauge_devices_expected{{node="{node}"}} 3',
        f'gpugauge_devices_observed{{node="{node}"}} {observed}',
        f'gpugauge_last_collection_timestamp_seconds{{node="{node}"}} {now}',
        (
            f'gpugauge_build_info{{version="0.1.0",contract="1",dcgm_version="4.2",nvml_version="13",python_version="3.11",'
            f'source="dcgm",node="{node}"}} 1'
        ),
    ]


def allocation(labels, namespace, name, share=None):
    """A device that is allocated to a container; `share` is how busy it is where that container has it alone."""
    found = [
        f'gpugauge_allocation_info{{{labels},{pod(namespace, name)},resource="nvidia_com_gpu",sharing="exclusive"}} 1'
    ]
    if share is not None:
        ids = re.sub(r'gpu="\d+",|,GPU_I_PROFILE="[^"]*"', "", labels)
        found.append(f"gpugauge_allocation_busy_ratio{{{ids},{pod(namespace, name)}}} {share}")
    return found


A0, A1, A2 = (device(f"GPU-a{i}", i) for i in range(3))
B0, B1, B2, B3 = (device("GPU-b0", 0, node="b", gi=gi) for gi in ("", "1", "2", "3"))
# A GPU instance that two compute instances share: it cannot be allocated itself.
C, C0, C1 = (device("GPU-b0", 0, node="b", gi="4", ci=ci) for ci in ("", "0", "1"))

NODE_A = [
    *activity(A0, 0.8),
    *activity(A1, 0.0),
    *activity(A2, 0.5),
    *gpu(A0, 500),
    *gpu(A1, 100),
    *gpu(A2, 300),
    *allocation(A0, "vision", "busy-0", 0.8),
    *allocation(A1, "vision", "idle-0", 0.0),
    *allocation(A2, "chat", "one"),
    *allocation(A2, "chat", "two"),
    allocated_pods(A0, 1),
    allocated_pods(A1, 1),
    allocated_pods(A2, 2),
    *(f"gpugauge_device_up{{{labels}}} 1" for labels in (A0, A1, A2)),
]
NODE_B = [
    f'gpugauge_device_info{{{B0},model="NVIDIA-A100"}} 1',
    *gpu(B0, 200),
    *(line.replace("H100", "A100") for line in activity(B1, 0.4, used=5_000, free=5_000)),
    *(line.replace("H100", "A100") for line in activity(B2, 0.0, used=0, free=10_000)),
    *(line.replace("H100", "A100") for line in activity(B3, 0.4, used=5_000, free=5_000)),
    *allocation(B1, "notebooks", "nb-0", 0.4),
    *allocation(B3, "notebooks", "nb-1", 0.4),
    allocated_pods(B1, 1),
    allocated_pods(B2, 0),
    allocated_pods(B3, 1),
    *(f'gpugauge_device_info{{{labels},model="NVIDIA-A100"}} 1' for labels in (C, C0, C1)),
    *(line for labels in (C0, C1) for line in activity(labels, 0.4)[1:2]),
    *allocation(C0, "notebooks", "nb-2", 0.4),
    allocated_pods(C0, 1),
    allocated_pods(C1, 0),
    f"gpugauge_device_up{{{B0}}} 1",
]


def watched(name, namespace="vision", workload="idle", workload_class="training"):
    return (
        f'gpugauge_gpu_pod_info{{{pod(namespace, name)},node="a",workload="{workload}",workload_type="job",'
        f'workload_class="{workload_class}",priority_class=""}} 1'
    )


WATCHER = [
    watched("busy-0", workload="busy"),
    watched("idle-0"),
    (
        f'gpugauge_pending_pod_reason{{{pod("vision", "next-0")},workload="next",workload_type="job",'
        f'reason="insufficient_gpu"}} 1'
    ),
]


def pending_since(since):
    return (
        f'gpugauge_pending_pod_since_timestamp_seconds{{{pod("vision", "next-0")},resource="nvidia_com_gpu",'
        f'workload="next",workload_type="job"}} {since}'
    )
