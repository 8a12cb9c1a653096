"""How many GPUs a pod asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cluster.kubernetes.pod_requests import pod_requests
from exporter.cluster.kubernetes.wire import Container, Requests
from exporter.gpu_names import gpu_resources, spelled

GPUS = gpu_resources()
GPU = "nvidia.com/gpu"


def asks(count, *, sidecar=False, name=GPU):
    return Container(Requests(requests={name: str(count)}), "Always" if sidecar else None)


def test_containers_add_up():
    assert pod_requests([asks(1), asks(3)], [], GPUS) == ((GPU, 4),)


def test_an_init_container_that_needs_more_decides():
    assert pod_requests([asks(1)], [asks(2)], GPUS) == ((GPU, 2),)
    assert pod_requests([asks(3)], [asks(2)], GPUS) == ((GPU, 3),)


def test_init_containers_run_one_after_another():
    assert pod_requests([], [asks(2), asks(1)], GPUS) == ((GPU, 2),)


def test_a_sidecar_adds_to_the_containers():
    assert pod_requests([asks(1)], [asks(1, sidecar=True)], GPUS) == ((GPU, 2),)


def test_an_init_container_runs_beside_the_sidecars_started_before_it_only():
    assert pod_requests([asks(1)], [asks(1, sidecar=True), asks(4)], GPUS) == ((GPU, 5),)
    assert pod_requests([asks(1)], [asks(4), asks(1, sidecar=True)], GPUS) == ((GPU, 4),)


def test_limits_stand_in_for_requests():
    assert pod_requests([Container(Requests(limits={GPU: 2}))], [], GPUS) == ((GPU, 2),)
    assert pod_requests([Container(Requests(limits={GPU: 2}, requests={GPU: "2"}))], [], GPUS) == ((GPU, 2),)


def test_each_resource_is_counted_on_its_own():
    mig = "nvidia.com/mig-2g.20gb"
    assert pod_requests([asks(1), asks(2, name=mig)], [], GPUS) == ((GPU, 1), (mig, 2))


def test_other_resources_and_nought_count_as_nothing():
    containers = [Container(), Container(Requests()), asks(0), asks(5, name="example.com/fpga"), asks(4, name="cpu")]
    assert pod_requests(containers, [], GPUS) == ()


def test_a_quantity_that_cannot_be_read_is_refused():
    with pytest.raises(ValueError, match="'many'"):
        pod_requests([asks("many")], [], GPUS)


@given(st.lists(st.integers(0, 8)), st.lists(st.tuples(st.integers(0, 8), st.booleans())))
def test_a_pod_never_asks_for_less_than_any_moment_of_its_life_needs(counts, init):
    answer = dict(
        pod_requests([asks(count) for count in counts], [asks(count, sidecar=side) for count, side in init], GPUS)
    ).get(GPU, 0)
    sidecars, moments = 0, []
    for count, side in init:
        moments.append(sidecars + count)
        sidecars += count if side else 0
    moments.append(sidecars + sum(counts))
    assert answer == max(moments)


@pytest.mark.parametrize(
    ("name", "gpu"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.10gb", True),
        ("nvidia.com/mig-1g.10gb.shared", True),
        ("nvidia.com/gpumem", False),
        ("nvidia.com/pgpu", False),
        ("amd.com/gpu", False),
        ("cpu", False),
    ],
)
def test_these_resources_are_gpus(name, gpu):
    assert (name in GPUS) is gpu


def test_further_names_can_be_given_whole_or_by_their_beginning():
    more = gpu_resources(("amd.com/gpu", "nvidia.com/GA10*"))
    assert "amd.com/gpu" in more
    assert "nvidia.com/GA102GL_A10" in more
    assert "amd.com/gpu2" not in more
    assert GPU in more


def test_a_lone_star_does_not_make_everything_a_gpu():
    assert "cpu" not in gpu_resources(("*",))


def test_resources_are_spelled_as_kube_state_metrics_does():
    assert spelled("nvidia.com/mig-1g.10gb") == "nvidia_com_mig_1g_10gb"
