"""The queries about pods on a real Prometheus with two hours of data."""

from contextlib import closing

import pytest

from exporter.commands.explain.past.activity import pod_activity
from exporter.commands.explain.past.capacity import IdleGpus, idle_gpus, past_waits
from exporter.commands.explain.past.causes import causes
from exporter.commands.prometheus.access import PrometheusAccess
from exporter.commands.prometheus.client import PrometheusClient
from simulators import objects
from tests.backfill import backfilled
from tests.dashboards.prometheus import running
from tests.exporter.cluster.fixture import NOW, pod

pytestmark = pytest.mark.prometheus

START = NOW - 7200
ANY = pod(objects.pod("p"))
POD = 'gpu_namespace="team",gpu_pod="{pod}"'
DEVICE = 'UUID="GPU-{n}",node="n1"'


def allocated(number, pod, busy):
    about = f"{DEVICE.format(n=number)},{POD.format(pod=pod)}"
    return [
        (f'gpugauge_allocation_info{{{about},resource="nvidia_com_gpu",sharing="exclusive"}}', 1),
        (f"gpugauge_allocation_busy_ratio{{{about}}}", busy),
        (f"gpugauge_device_tensor_active_ratio{{{DEVICE.format(n=number)}}}", 0),
        (f"gpugauge_device_allocated_pods{{{DEVICE.format(n=number)}}}", 1),
        (f'gpugauge_device_info{{{DEVICE.format(n=number)},model="H100"}}', 1),
        (f'gpugauge_clock_event{{{DEVICE.format(n=number)},reason="sw_power_cap"}}', lambda at: int(at % 240 == 0)),
        (f"DCGM_FI_PROF_PCIE_RX_BYTES{{{DEVICE.format(n=number)}}}", 8e9),
        (f"DCGM_FI_PROF_PCIE_TX_BYTES{{{DEVICE.format(n=number)}}}", 4e9),
    ]


def counter(rate):
    return lambda at: (at - START) * rate


WAITS = 'gpu_namespace="team",resource="nvidia_com_gpu",size="1"'
CONTAINER = 'namespace="team",pod="works",container="main"'
WAITS = 'gpu_namespace="team",resource="nvidia_com_gpu",size="1"'
SERIES = [
    *allocated(0, "works", lambda at: 0.8 if at % 600 < 120 else 0.1),
    *allocated(1, "works", 0.0),
    *allocated(2, "idle", 0.0),
    (f"container_cpu_cfs_throttled_periods_total{{{CONTAINER}}}", counter(4)),
    (f"container_cpu_cfs_periods_total{{{CONTAINER}}}", counter(10)),
    (f"container_pressure_io_waiting_seconds_total{{{CONTAINER}}}", counter(0.2)),
    (f"kube_pod_container_status_restarts_total{{{CONTAINER}}}", lambda at: int((at - START) / 900)),
    *(
        (
            f'gpugauge_pod_scheduling_wait_seconds_bucket{{{WAITS},le="{bound}"}}',
            counter(0.01 * share),
        )
        for bound, share in (("60.0", 0.5), ("900.0", 0.9), ("+Inf", 1))
    ),
    (
        f"gpugauge_pod_scheduling_wait_seconds_count{{{WAITS}}}",
        counter(0.01),
    ),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    backfilled(folder, SERIES, START, NOW)
    with running(folder, "{}") as url, closing(PrometheusClient(PrometheusAccess(url))) as client:
        yield client


def test_the_last_hour_of_a_pod_is_read(client):
    found = pod_activity(client, NOW, "", ("team", "works"))
    first, second = found.devices
    assert (first.busy, first.busiest, first.tensor) == (pytest.approx(0.24, abs=0.02), 0.8, 0)
    assert (second.busiest, second.pcie) == (0, 12e9)
    assert dict(first.throttled) == {"sw_power_cap": pytest.approx(0.25, abs=0.02)}
    assert found.cpu_throttled == pytest.approx(0.4)
    assert found.io_waiting == pytest.approx(0.2)
    assert found.restarts == pytest.approx(4, abs=0.6)
    assert found.not_seen == ()
    assert str(causes(found)[0].cause) == "pcie_bound"


def test_gpus_that_were_idle_for_an_hour_are_found(client):
    rows = [IdleGpus("n1", "team", name, "nvidia_com_gpu", "H100", 1) for name in ("idle", "works")]
    assert idle_gpus(client, NOW, "", ANY, None) == rows
    assert idle_gpus(client, NOW, "", ANY, {"n2"}) == []
    assert idle_gpus(client, NOW, "west", ANY, None) == []


def test_the_waits_of_pods_like_it_are_read(client):
    (found,) = past_waits(client, NOW, "", pod(objects.pod("p", "team")))
    assert (found.namespace, found.size) == ("team", "1")
    assert found.pods == pytest.approx(72, abs=2)
    assert (found.p50, found.p95) == (pytest.approx(60, abs=1), pytest.approx(900, abs=1))
