"""Four days of a small fleet, as Prometheus stores them: what each GPU did is written beside it.

- node a: two H100, both of the pod train-0; one is busy 60 % of the time, the other idle.
- node b: an H100 with two 3g.40gb; one belongs to chat-0, which is 5 % busy; the other is unallocated.
- node c: an L4 that nb-1 (two replicas) and nb-2 (one) share, and one of nb-3, which is 4 % busy.
- node d: an H100 that is unallocated, stranded on the last day and unobserved for 45 minutes, and one that is lost.
"""

from tests.exporter.cluster.fixture import NOW

DAYS = 4
END = int(NOW) // 86400 * 86400
START = END - DAYS * 86400
GAP = START + 86400 + 3600, START + 86400 + 3600 + 2700
"""When the exporter of node d did not answer."""
STEP = 120
GB = 1e9
H100, L4 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L4"


def seen(at):
    return not GAP[0] <= at < GAP[1]


def ids(uuid, node, gi=""):
    return f'UUID="{uuid}",node="{node}"' + (f',GPU_I_ID="{gi}"' if gi else "")


def pod_labels(namespace, pod):
    return f'gpu_namespace="{namespace}",gpu_pod="{pod}"'


def gpu(uuid, node, model, watts=100.0, up=1):
    about = ids(uuid, node)
    return [
        (f"gpugauge_device_up{{{about}}}", up),
        (f'gpugauge_device_info{{{about},model="{model}"}}', 1),
        (f"gpugauge_gpu_power_watts{{{about}}}", watts),
        (f"gpugauge_gpu_energy_joules_total{{{about}}}", lambda at: (at - START) * watts),
    ]


def mig(uuid, node, gi, profile="3g.40gb"):
    return [(f'gpugauge_device_info{{{ids(uuid, node, gi)},model="{H100}",GPU_I_PROFILE="{profile}"}}', 1)]


def state(about, **shares):
    """Counters of the states of a device, by the share of the time in each."""
    return [
        (
            f'gpugauge_device_state_seconds_total{{{about},state="{name}"}}',
            lambda at, share=share: round((at - START) * share, 3),
        )
        for name, share in shares.items()
    ]


def device(about, pods, used=0.0, total=80 * GB, busy=None):
    found = [
        (f"gpugauge_device_allocated_pods{{{about}}}", pods),
        (f"gpugauge_device_memory_used_bytes{{{about}}}", used),
        (f"gpugauge_device_memory_total_bytes{{{about}}}", total),
    ]
    return [*found, *([] if busy is None else [(f"gpugauge_device_busy_ratio{{{about}}}", busy)])]


def allocation(about, namespace, pod, busy=None, sharing="exclusive"):
    labels = f"{about},{pod_labels(namespace, pod)}"
    found = [(f'gpugauge_allocation_info{{{labels},resource="nvidia_com_gpu",sharing="{sharing}"}}', 1)]
    return [*found, *([] if busy is None else [(f"gpugauge_allocation_busy_ratio{{{labels}}}", busy)])]


def replicas(about, namespace, pod, number):
    return [(f"gpugauge_allocation_replicas{{{about},{pod_labels(namespace, pod)}}}", number)]


def workload(namespace, pod, name, kind, workload_class):
    labels = f'{pod_labels(namespace, pod)},workload="{name}",workload_type="{kind}",workload_class="{workload_class}"'
    return [(f"gpugauge_gpu_pod_info{{{labels}}}", 1)]


A0, A1 = ids("GPU-a0", "a"), ids("GPU-a1", "a")
B1, B2 = ids("GPU-b0", "b", "1"), ids("GPU-b0", "b", "2")
C0, C1 = ids("GPU-c0", "c"), ids("GPU-c1", "c")
D0 = ids("GPU-d0", "d")
NODE_A = [
    *gpu("GPU-a0", "a", H100, 400),
    *gpu("GPU-a1", "a", H100, 100),
    *device(A0, 1, 60 * GB, busy=0.6),
    *device(A1, 1, 1 * GB, busy=0),
    *allocation(A0, "vision", "train-0", 0.6),
    *allocation(A1, "vision", "train-0", 0),
    *state(A0, busy=1, idle=0),
    *state(A1, busy=0, idle=1),
    ('gpugauge_xid_errors_total{UUID="GPU-a0",node="a",xid="31"}', lambda at: int(at > START + 100_000)),
]
NODE_B = [
    *gpu("GPU-b0", "b", H100, 200),
    *mig("GPU-b0", "b", "1"),
    *mig("GPU-b0", "b", "2"),
    *device(B1, 1, 3 * GB, 42 * GB, busy=0.05),
    *device(B2, 0, 0, 42 * GB, busy=0),
    *allocation(B1, "chat", "chat-0", 0.05),
    *state(B1, busy=0.9, idle=0.1),
    *state(B2, unallocated=1),
]
NODE_C = [
    *gpu("GPU-c0", "c", L4, 50),
    *gpu("GPU-c1", "c", L4, 40),
    *device(C0, 2, 6 * GB, 24 * GB, busy=0.3),
    *device(C1, 1, 2 * GB, 24 * GB, busy=0.04),
    *allocation(C0, "notebooks", "nb-1", sharing="time-slicing"),
    *allocation(C0, "notebooks", "nb-2", sharing="time-slicing"),
    *replicas(C0, "notebooks", "nb-1", 2),
    *replicas(C0, "notebooks", "nb-2", 1),
    *allocation(C1, "notebooks", "nb-3", 0.04),
    *state(C0, shared=1),
    *state(C1, busy=1),
]
NODE_D = [
    *gpu("GPU-d0", "d", H100, 80),
    ('gpugauge_device_up{UUID="GPU-d1",node="d"}', 0),
    (f'gpugauge_device_info{{UUID="GPU-d1",node="d",model="{H100}"}}', 1),
    *device(D0, 0, 0, busy=0),
    (
        f'gpugauge_device_state_seconds_total{{{D0},state="unallocated"}}',
        lambda at: at - START - (0 if at < GAP[1] else GAP[1] - GAP[0]),
    ),
]
CLUSTER = [
    *workload("vision", "train-0", "train", "job", "training"),
    *workload("chat", "chat-0", "chat", "deployment", "serving"),
    *(workload("notebooks", f"nb-{n}", f"nb-{n}", "notebook", "interactive")[0] for n in (1, 2, 3)),
    ('gpugauge_namespace_info{gpu_namespace="vision",team="research",cost_center="4711"}', 1),
    ('gpugauge_namespace_info{gpu_namespace="chat",team="product",cost_center="4712"}', 1),
    *((f'gpugauge_node_info{{node="{node}",pool="{"cheap" if node == "c" else "main"}"}}', 1) for node in "abcd"),
    ('gpugauge_pending_pods{gpu_namespace="vision",reason="insufficient_gpu"}', 2),
    ('gpugauge_pending_devices{gpu_namespace="vision",reason="insufficient_gpu"}', 16),
    (
        'gpugauge_node_gpu_stranded{node="d",resource="nvidia_com_gpu",blocker="cpu"}',
        lambda at: 1 if at > END - 86400 else 0,
    ),
    (f"gpugauge_gpu_pod_start_timestamp_seconds{{{pod_labels('vision', 'train-0')}}}", START + 600),
    (
        f"gpugauge_pending_pod_since_timestamp_seconds{{{pod_labels('vision', 'train-0')}}}",
        lambda at: START - 1200 if at < START + 600 else None,
    ),
    (f'gpugauge_price_per_hour{{model="{H100}",currency="EUR"}}', 2.0),
    (f'gpugauge_price_per_hour{{model="{L4}",currency="EUR"}}', 0.9),
    (f'gpugauge_price_per_hour{{model="{L4}",pool="cheap",currency="EUR"}}', 0.5),
    (f'gpugauge_price_per_hour{{model="{H100}",capacity_type="spot",currency="EUR"}}', 0.1),
]


def with_gap(series):
    """The same series without samples while the exporter did not answer."""
    for name, value in series:
        yield (
            name,
            lambda at, value=value: None if not seen(at) else value(at) if callable(value) else value,
        )


SERIES = [*NODE_A, *NODE_B, *NODE_C, *with_gap(NODE_D), *CLUSTER]
