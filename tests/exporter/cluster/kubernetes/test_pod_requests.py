"""How many GPUs a pod requests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.api_objects.wire import ResourceRequirements
from exporter.cluster.kubernetes.objects.wire import WireContainer
from exporter.cluster.kubernetes.pods.pod_requests import class_requests, fraction, pod_requests
from exporter.gpu_names import gpu_resources, resource_label

GPUS = gpu_resources()
GPU = "nvidia.com/gpu"


def requesting(count, *, sidecar=False, name=GPU):
    return WireContainer(ResourceRequirements(requests={name: str(count)}), "Always" if sidecar else None)


def test_containers_add_up():
    assert pod_requests([requesting(1), requesting(3)], [], GPUS) == ((GPU, 4),)


def test_the_larger_of_init_containers_and_containers_counts():
    assert pod_requests([requesting(1)], [requesting(2)], GPUS) == ((GPU, 2),)
    assert pod_requests([requesting(3)], [requesting(2)], GPUS) == ((GPU, 3),)


def test_the_largest_of_several_init_containers_counts():
    assert pod_requests([], [requesting(2), requesting(1)], GPUS) == ((GPU, 2),)


def test_a_sidecar_adds_to_the_containers():
    assert pod_requests([requesting(1)], [requesting(1, sidecar=True)], GPUS) == ((GPU, 2),)


def test_an_init_container_adds_to_the_sidecars_started_before_it_only():
    assert pod_requests([requesting(1)], [requesting(1, sidecar=True), requesting(4)], GPUS) == ((GPU, 5),)
    assert pod_requests([requesting(1)], [requesting(4), requesting(1, sidecar=True)], GPUS) == ((GPU, 4),)


def test_limits_count_as_requests_where_these_are_missing():
    assert pod_requests([WireContainer(ResourceRequirements(limits={GPU: 2}))], [], GPUS) == ((GPU, 2),)
    assert pod_requests([WireContainer(ResourceRequirements(limits={GPU: 2}, requests={GPU: "2"}))], [], GPUS) == (
        (GPU, 2),
    )


def test_each_resource_is_counted_on_its_own():
    mig = "nvidia.com/mig-2g.20gb"
    assert pod_requests([requesting(1), requesting(2, name=mig)], [], GPUS) == ((GPU, 1), (mig, 2))


def test_other_resources_and_zero_are_left_out():
    containers = [
        WireContainer(),
        WireContainer(ResourceRequirements()),
        requesting(0),
        requesting(5, name="example.com/fpga"),
        requesting(4, name="cpu"),
    ]
    assert pod_requests(containers, [], GPUS) == ()


def test_a_quantity_that_cannot_be_read_is_a_value_error():
    with pytest.raises(ValueError, match="'many'"):
        pod_requests([requesting("many")], [], GPUS)


@given(st.lists(st.integers(0, 8)), st.lists(st.tuples(st.integers(0, 8), st.booleans())))
def test_a_pod_requests_as_much_as_at_the_largest_moment_of_its_life(counts, init):
    answer = dict(
        pod_requests(
            [requesting(count) for count in counts], [requesting(count, sidecar=side) for count, side in init], GPUS
        )
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


def test_further_names_can_be_given_whole_or_by_a_prefix():
    more = gpu_resources(("amd.com/gpu", "nvidia.com/GA10*"))
    assert "amd.com/gpu" in more
    assert "nvidia.com/GA102GL_A10" in more
    assert "amd.com/gpu2" not in more
    assert GPU in more


def test_a_star_alone_matches_no_resource():
    assert "cpu" not in gpu_resources(("*",))


def test_a_resource_label_is_spelled_as_in_kube_state_metrics():
    assert resource_label("nvidia.com/mig-1g.10gb") == "nvidia_com_mig_1g_10gb"


@pytest.mark.parametrize("share", ["nvidia.com/gpumem", "nvidia.com/gpucores", "nvidia.com/gpumem-percentage"])
def test_who_requests_only_a_share_of_a_gpu_gets_one(share):
    assert pod_requests([requesting(3000, name=share)], [], GPUS) == ((GPU, 1),)
    both = WireContainer(ResourceRequirements(limits={GPU: 2, share: 3000}))
    assert pod_requests([both], [], GPUS) == ((GPU, 2),)


def test_a_resource_named_after_a_device_class_asks_for_its_devices():
    name = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
    assert class_requests([requesting(3, name=name), requesting(1)], []) == (("gpu.nvidia.com", 3),)
    assert pod_requests([requesting(3, name=name)], [], GPUS) == ()


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"gpu-fraction": "0.5"}, (("gpu-fraction", 1),)),
        ({"gpu-memory": "2000"}, (("gpu-fraction", 1),)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, (("gpu-fraction", 2),)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "many"}, (("gpu-fraction", 1),)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "9" * 5_000}, (("gpu-fraction", 1),)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "10000"}, (("gpu-fraction", 1),)),
        ({"gpu-fraction": ""}, ()),
        ({"gpu-fraction-num-devices": "2"}, ()),
        ({}, ()),
    ],
)
def test_annotations_of_fractional_schedulers_ask_for_parts_of_gpus(annotations, expected):
    assert fraction(annotations) == expected
