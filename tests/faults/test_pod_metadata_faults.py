"""Faults of the API server as the node exporter sees them with pod metadata: devices and allocations stay."""

import pytest

from exporter.node.service_account.reflector import LONGEST_PAUSE
from simulators.api_server_http import ApiFault
from tests.exporter.node.pod_node import pod, pod_node, uuid
from tests.faults.fault import Exposed, as_before, fault
from tests.faults.programs import INTERVAL, collecting
from tests.waiting import until

pytestmark = pytest.mark.slow

LABELED = 'gpugauge_allocation_info{gpu_pod="train",gpu_pod_uid="uid-of-train",workload="train",workload_type="pod"} 1'


def down(reason):
    """The samples while the pods cannot be read."""
    problem = f'gpugauge_source_problem{{source="kubernetes",reason="{reason}"}} 1'
    return 'gpugauge_source_up{source="kubernetes"} 0', problem


@pytest.fixture
def node(tmp_path):
    """A node whose API server knows the pod that has its first GPU."""
    with pod_node(tmp_path, "--pod-labels=app") as made:
        made.api.put("pods", pod("train", labels={"app": "x"}))
        made.kubelet.rows = [("train", uuid(0))]
        yield made


def known(get):
    """The exposition once the pods are known."""
    found = until(lambda: '"uid-of-train"' in (text := get("/metrics")[1]) and 'app="x"' in text and text)
    return Exposed(found)


@fault(
    name="Pod metadata is on, and the API server is away: what was known is used for 10 minutes",
    shows=(*down("unreachable"), LABELED, 'DCGM_FI_DEV_GPU_UTIL{pod="train",app="x"} > 0'),
    pause=LONGEST_PAUSE,
)
def test_while_the_api_server_is_away_what_was_known_of_pods_is_used(node, row):
    with collecting(node.flow.pipeline.collect) as get:
        before = known(get)
        node.api.stop(keep_port=True)
        row.wait_until_shown(get)
        node.api.start()
        row.wait_until_recovered(get, as_before(before), INTERVAL)


@fault(
    name="Pod metadata is on, and the service account may not list pods: devices and pods' names stay",
    shows=(*down("forbidden"), 'gpugauge_allocation_info{gpu_pod="train"} 1', 'DCGM_FI_DEV_GPU_UTIL{pod="train"} > 0'),
    pause=LONGEST_PAUSE,
)
def test_without_the_role_allocations_are_named_as_the_kubelet_names_them(tmp_path, row):
    with pod_node(tmp_path, "--pod-labels=app") as node:
        node.api.add_fault(ApiFault("list", status=403, times=10**6))
        node.api.put("pods", pod("train", labels={"app": "x"}))
        node.kubelet.rows = [("train", uuid(0))]
        with collecting(node.flow.pipeline.collect) as get:
            shown = row.wait_until_shown(get)
            assert '"uid-of-train"' not in shown.text
            node.api.clear_faults()
            row.wait_until_recovered(get, lambda exposed: '"uid-of-train"' in exposed.text, INTERVAL)
