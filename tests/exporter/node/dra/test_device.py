"""Names of devices of NVIDIA's DRA driver: what they show."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.node.dra.device import DraDevice, may_be_profile, named, profile_in_names, same_profile

numbers = st.integers(0, 999_999_999)
slices = st.integers(1, 8)
profiles = st.builds("{}g.{}gb{}".format, slices, st.integers(1, 300), st.sampled_from(["", "+me", "+gfx", "-me"]))

NAMES = [
    ("gpu-0", DraDevice("gpu", 0)),
    ("gpu-12", DraDevice("gpu", 12)),
    ("gpu-0-mig-1g10gb-19-0", DraDevice("mig", 0, profile="1g10gb", start=0)),
    ("gpu-3-mig-1g10gb-me-20-6", DraDevice("mig", 3, profile="1g10gb-me", start=6)),
    ("gpu-3-mig-19-4-1", DraDevice("mig", 3, start=4)),
    ("gpu-vfio-7", DraDevice("vfio")),
    *((name, DraDevice()) for name in ("", "gpu-", "gpu-x", "gpu-0-", "GPU-0", "gpu-0-mig-19-4", "gpu--1", "mig-0")),
    ("gpu-0001-0001-0001-0001", DraDevice()),
    ("gpu-1\n", DraDevice()),
]


@pytest.mark.parametrize(("name", "device"), NAMES)
def test_every_spelling_shows_what_the_driver_puts_into_it(name, device):
    assert named(name) == device


@given(st.text())
@example("gpu-" + "9" * 5000)
def test_a_name_of_another_spelling_shows_nothing_and_never_fails(name):
    device = named(name)
    assert (device == DraDevice()) == (re.fullmatch(r"gpu-(vfio-)?[0-9]{1,9}(-mig-.*)?", name) is None)


@given(numbers, profiles, numbers, numbers)
def test_the_name_of_a_mig_device_is_read_as_the_driver_writes_it(minor, profile, profile_id, start):
    device = named(f"gpu-{minor}-mig-{profile_in_names(profile)}-{profile_id}-{start}")
    assert device == DraDevice("mig", minor, profile=profile_in_names(profile), start=start)
    assert same_profile(profile, device.profile)


@given(profiles, profiles)
def test_a_profile_that_differs_in_more_than_memory_is_never_meant(one, other):
    claimed = profile_in_names(other)
    assert may_be_profile(one, claimed) == (one[0] == other[0])
    assert same_profile(one, claimed) <= may_be_profile(one, claimed)
    assert same_profile(one, claimed) == (profile_in_names(one) == claimed)


def test_a_compute_instance_is_a_part_of_a_gpu_instance():
    assert same_profile("2g.20gb", profile_in_names("1c.2g.20gb"))
    assert not same_profile("", "2g20gb")
    assert may_be_profile("", "2g20gb")
    assert may_be_profile("2g.20gb", "")
