"""Names of GPU resources and GPU models, as both programs spell them."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.gpu_names import canonical_model, gpu_resources, is_gpu_class, mig_slices, resource_label, share_of


@pytest.mark.parametrize(
    ("nvml", "labels", "model"),
    [
        (
            "NVIDIA A100-SXM4-40GB",
            [
                "NVIDIA-A100-SXM4-40GB",
                "NVIDIA-A100-SXM4-40GB-SHARED",
                "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
                "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED",
                "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me",
                "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me-SHARED",
                "NVIDIA-A100-SXM4-40GB-MIG-1c.2g.10gb",
                "NVIDIA-A100-SXM4-40GB-MIG-INVALID",
                "NVIDIA-A100-SXM4-40GB-MIG-INVALID-SHARED",
            ],
            "NVIDIA-A100-SXM4-40GB",
        ),
        (
            "NVIDIA H100 80GB HBM3",
            ["NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3-SHARED", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"],
            "NVIDIA-H100-80GB-HBM3",
        ),
        ("Tesla T4", ["Tesla-T4", "Tesla-T4-SHARED"], "Tesla-T4"),
    ],
)
def test_nvmls_name_and_every_label_of_gpu_feature_discovery_give_one_model(nvml, labels, model):
    assert {canonical_model(name) for name in (nvml, *labels)} == {model}


def test_only_a_suffix_is_removed_from_a_model():
    assert canonical_model("NVIDIA-SHARED-A100") == "NVIDIA-SHARED-A100"
    assert canonical_model("NVIDIA-MIG-9000") == "NVIDIA-MIG-9000"
    assert canonical_model("  NVIDIA  H200\t") == "NVIDIA-H200"
    assert canonical_model("") == ""


@given(st.text(max_size=20))
def test_a_model_has_no_blanks(name):
    model = canonical_model(name)
    assert model == "".join(model.split())


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-1g.10gb.me",
        "nvidia.com/mig-1g.10gb.shared",
        "nvidia.com/gpu-h100",
        "nvidia.com/GH100_H100_PCIE",
        "nvidia.com/GA102GL_A10",
        "nvidia.com/TU104GL_Tesla_T4",
        "nvidia.com/AD102GL_L40S",
        "nvidia.com/GRID_A100-10C",
        "nvidia.com/NVIDIA_A40-48Q",
        "volcano.sh/vgpu-number",
    ],
)
def test_the_resources_of_nvidias_device_plugin_mean_gpus(name):
    assert name in gpu_resources()


@pytest.mark.parametrize(
    "name",
    [
        "nvidia.com/gpumem",
        "nvidia.com/gpu.product",
        "nvidia.com/mig-",
        "amd.com/gpu",
        "xnvidia.com/gpu",
        "nvidia_com/gpu",
        "cpu",
        "",
    ],
)
def test_other_resources_do_not_mean_gpus(name):
    assert name not in gpu_resources()


@pytest.mark.parametrize(
    "name", ["nvidia.com/gpus", "nvidia.com/GPU", "nvidia.com/mig1g.10gb", "nvidia.com/gpu-shared"]
)
def test_a_misspelled_gpu_resource_means_gpus(name):
    assert name in gpu_resources()


@pytest.mark.parametrize(
    "name", ["nvidia.com/hostdev", "nvidia.com/sriovnet", "nvidia.com/cx6_sriov", "nvidia.com/pgpu"]
)
def test_other_devices_of_nvidia_are_no_gpus(name):
    assert name not in gpu_resources()


@pytest.mark.parametrize(
    ("pattern", "named", "others"),
    [
        ("amd.com/gpu", ("amd.com/gpu",), ("amd.com/gpus", "xamd.com/gpu", "amd_com/gpu")),
        ("amd.com/*", ("amd.com/gpu", "amd.com/cpx_nps4"), ("amd.company/gpu",)),
        ("*.example.com/gpu*", ("a.example.com/gpu", "b.example.com/gpu.shared"), ("example.com/gpu",)),
        ("example.com/[ab]", ("example.com/[ab]",), ("example.com/a",)),
    ],
)
def test_a_configured_pattern_names_gpus_and_a_star_stands_for_any_text(pattern, named, others):
    gpus = gpu_resources(("example.org/x", pattern))
    assert all(name in gpus for name in named)
    assert not any(name in gpus for name in others)
    assert "nvidia.com/gpu" in gpus


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("nvidia.com/gpumem", "nvidia.com/gpu"),
        ("nvidia.com/gpumem-percentage", "nvidia.com/gpu"),
        ("nvidia.com/gpucores", "nvidia.com/gpu"),
        ("volcano.sh/vgpu-memory", "volcano.sh/vgpu-number"),
        ("nvidia.com/gpu", None),
        ("nvidia.com/priority", None),
    ],
)
def test_memory_and_cores_of_a_virtual_gpu_are_shares_of_a_device(name, device):
    assert share_of(name) == device


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("gpu.nvidia.com", True),
        ("mig.nvidia.com", True),
        ("vfio.gpu.nvidia.com", True),
        ("team-gpu", True),
        ("gpu2", True),
        ("gpuless.example.com", False),
        ("migration.example.com", False),
        ("dranet.example.com", False),
        ("nvidia.com/gpus", False),
    ],
)
def test_the_name_of_a_device_class_can_speak_of_gpus(name, gpus):
    assert is_gpu_class(name) is gpus


def test_a_configured_name_means_gpus_when_it_is_the_whole_name():
    resources = gpu_resources(("example.com/H100_PCIE",))
    assert "example.com/H100_PCIE" in resources
    assert "example.com/H100" not in resources
    assert "example.com/H100_PCIE_2" not in resources
    assert "nvidia.com/gpu" in resources


def test_a_configured_pattern_means_every_name_with_its_prefix():
    resources = gpu_resources(("amd.com/*", "example.com/gpu"))
    assert "amd.com/gpu" in resources
    assert "amd.com/cpx_nps4" in resources
    assert "example.com/gpu" in resources
    assert "amd.org/gpu" not in resources
    assert "amd.com/*" not in gpu_resources(("amd.com/gpu",))


def test_a_lone_asterisk_does_not_make_every_resource_a_gpu():
    assert "cpu" not in gpu_resources(("*",))


def test_resources_are_spelled_as_kube_state_metrics_spells_them():
    assert resource_label("nvidia.com/gpu") == "nvidia_com_gpu"
    assert resource_label("nvidia.com/mig-1g.10gb") == "nvidia_com_mig_1g_10gb"


@given(st.text())
def test_a_resource_label_has_only_letters_digits_and_underscores(name):
    assert set(resource_label(name)) <= set(string.ascii_letters + string.digits + "_")


@pytest.mark.parametrize(
    ("name", "slices"),
    [
        ("nvidia.com/mig-1g.10gb", "1g"),
        ("nvidia.com/mig-7g.80gb.shared", "7g"),
        ("nvidia.com/mig-1g.10gb.me", "1g"),
        ("nvidia.com/mig-custom", ""),
        ("nvidia.com/gpu", ""),
        ("example.com/mig-1g.10gb", ""),
    ],
)
def test_the_size_of_a_mig_device_is_in_the_name_of_its_resource(name, slices):
    assert mig_slices(name) == slices
