"""Which GPU instances fit a GPU side by side, by the places of NVIDIA's table."""

import pytest

from exporter.commands.mig.models import MODELS, model_of, models_of_device
from exporter.commands.mig.placement import combinations, geometry_text, largest_parts, placement, refusal
from exporter.gpu_names import canonical_model

H100 = model_of("H100-80GB")


@pytest.mark.parametrize(
    ("geometry", "fits"),
    [
        ({"3g.40gb": 2}, True),
        ({"3g.40gb": 2, "1g.10gb": 1}, False),
        ({"1g.10gb": 7}, True),
        ({"1g.10gb": 8}, False),
        ({"4g.40gb": 1, "3g.40gb": 1}, True),
        ({"4g.40gb": 2}, False),
        ({"1g.20gb": 4}, True),
        ({"1g.20gb": 5}, False),
        ({"2g.20gb": 3, "1g.10gb": 1}, True),
        ({"2g.20gb": 3, "1g.20gb": 1}, True),
        ({"2g.20gb": 4}, False),
        ({"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}, True),
        ({"7g.80gb": 1}, True),
        ({"7g.80gb": 1, "1g.10gb": 1}, False),
        ({"1g.10gb+me": 1, "1g.10gb": 6}, True),
        ({"1g.10gb+me": 2}, False),
        ({"1g.5gb": 1}, False),
    ],
)
def test_an_80_gb_gpu_takes_what_its_memory_slices_allow(geometry, fits):
    assert (placement(H100, geometry) is not None) is fits
    assert (refusal(H100, geometry) == "") is fits


def test_no_two_gpu_instances_have_the_same_memory_slice():
    for model in MODELS:
        for geometry in combinations(model):
            taken = [s for p, start in placement(model, geometry) for s in range(start, start + p.memory)]
            assert len(taken) == len(set(taken))
            assert max(taken) < model.memory


def test_no_geometry_has_more_compute_slices_than_the_gpu_and_some_have_fewer():
    for model in MODELS:
        sums = {sum(model.profile(name).compute * n for name, n in each.items()) for each in combinations(model)}
        assert max(sums) == model.compute
    assert {"3g.40gb": 2} in combinations(H100)


def test_the_parts_that_fit_are_those_to_which_nothing_could_be_added():
    assert largest_parts(H100, {"3g.40gb": 2, "1g.10gb": 1}) == [{"3g.40gb": 2}, {"3g.40gb": 1, "1g.10gb": 1}]
    assert largest_parts(H100, {"1g.10gb": 9}) == [{"1g.10gb": 7}]
    assert largest_parts(H100, {"1g.10gb+me": 3}) == [{"1g.10gb+me": 1}]
    assert largest_parts(H100, {"1g.5gb": 2}) == []


@pytest.mark.parametrize(
    ("geometry", "text"),
    [
        (
            {"3g.40gb": 2, "1g.10gb": 1},
            "they need 9 memory slices and the GPU has 8 (each 3g.40gb 4, 1g.10gb 1)",
        ),
        ({"1g.10gb": 8}, "the GPU has places for 7 x 1g.10gb"),
        ({"1g.10gb+me": 2}, "one GPU instance can have the media extensions (+me), and 2 are asked for"),
        (
            {"4g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2},
            (
                "they overlap wherever they are: 4g.40gb may begin at memory slice 0; 2g.20gb may begin at memory "
                "slice 0, 2, 4; 1g.10gb may begin at memory slice 0, 1, 2, 3, 4, 5, 6"
            ),
        ),
    ],
)
def test_the_refusal_says_which_rule_is_broken(geometry, text):
    assert refusal(H100, geometry) == text


@pytest.mark.parametrize(
    ("product", "model"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100-40GB"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB"),
        ("NVIDIA A800-SXM4-80GB", "A100-80GB"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "A100-40GB"),
        ("NVIDIA A30", "A30-24GB"),
        ("NVIDIA H100 80GB HBM3", "H100-80GB"),
        ("NVIDIA H100 PCIe", "H100-80GB"),
        ("NVIDIA H100 NVL", "H100-94GB"),
        ("NVIDIA GH200 480GB", "H100-96GB"),
        ("NVIDIA H200 NVL", "H200-141GB"),
        ("NVIDIA B200", "B200-180GB"),
        ("NVIDIA GB200", "GB200-186GB"),
        ("H200-141GB", "H200-141GB"),
        ("Tesla T4", None),
        ("NVIDIA L40S", None),
        ("", None),
    ],
)
def test_a_product_name_finds_its_row(product, model):
    found = model_of(canonical_model(product))
    assert (found.name if found else None) == model


def test_a_pci_device_finds_its_row():
    assert [each.name for each in models_of_device("0x233010DE")] == ["H100-80GB"]
    assert [each.name for each in models_of_device("0x20b510de")] == ["A100-80GB"]
    assert models_of_device("0x233010AB") == models_of_device("H100") == []


def test_no_pci_device_is_in_two_rows_and_sizes_grow_with_the_slices():
    ids = [each for model in MODELS for each in model.pci_ids]
    assert len(ids) == len(set(ids))
    for model in MODELS:
        sizes = [each.gigabytes for each in model.profiles]
        assert sizes == sorted(sizes)
        assert model.profiles[-1].memory == model.memory


def test_a_geometry_is_written_with_numbers():
    assert geometry_text({"3g.40gb": 2, "1g.10gb": 1, "2g.20gb": 0}) == "2 x 3g.40gb + 1 x 1g.10gb"
    assert geometry_text({}) == "no GPU instance"
