"""Finding the library, and the addresses of host engines."""

import os
import shutil
import subprocess
import sys

import pytest

from exporter.node.dcgm.host_engine.address import Address, AddressError, parse_address
from exporter.node.dcgm.native import layout
from exporter.node.dcgm.native.library import SIGNATURES, StatusError, open_library
from exporter.node.dcgm.native.reasons import DcgmReason
from exporter.source import SourceError
from tests.exporter.node.dcgm.fixture import document, gpu_spec
from tests.fakes.build import build


def reason(call, *arguments):
    with pytest.raises(SourceError) as caught:
        call(*arguments)
    return caught.value.reason


def test_the_given_file_is_loaded_and_has_its_version(engine_of):
    engine = engine_of(document(gpu_spec(0), versions={"dcgm": "3.3.9"}))
    library = open_library(str(engine.library))
    assert (library.version, library.major) == ("3.3.9", 3)


def test_a_file_that_does_not_exist_is_missing_and_no_other_is_tried(engine_of):
    assert reason(open_library, "/nowhere/libdcgm.so.4") == "library_missing"


def test_without_any_library_the_reason_is_that_it_is_missing():
    if shutil.which("nv-hostengine"):
        pytest.skip("DCGM is installed here")
    # In a new process: here the loader would return the fake library of the same soname that another test loaded.
    answer = in_a_new_process("", "exporter.node.dcgm.native.library.open_library()")
    assert "neither libdcgm.so.4 nor libdcgm.so.3 can be loaded" in answer.stderr


def test_the_messages_name_the_supported_versions():
    newest, oldest = layout.SUPPORTED_MAJORS
    assert f"Neither libdcgm.so.{newest} nor libdcgm.so.{oldest} " in DcgmReason.LIBRARY_MISSING.meaning
    assert f"neither version {oldest} nor version {newest}" in DcgmReason.LIBRARY_UNSUPPORTED.meaning


@pytest.mark.parametrize("sonames", [("libdcgm.so.3", "libdcgm.so.4"), ("libdcgm.so.3",)])
def test_the_loader_finds_the_newest_major(engine_of, tmp_path, sonames):
    engine = engine_of(document(gpu_spec(0)))
    folder = tmp_path / "loader"
    for soname in sonames:
        build(folder, only=soname)
    engine.at(0.0)
    answer = in_a_new_process(str(folder), "print(exporter.node.dcgm.native.library.open_library().major)")
    assert answer.stdout.strip() == sonames[-1][-1]


def in_a_new_process(library_path, code):
    return subprocess.run(
        [sys.executable, "-c", f"import exporter.node.dcgm.native.library; {code}"],
        env={**os.environ, "LD_LIBRARY_PATH": library_path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_library_of_another_major_version_is_rejected_by_its_name_or_its_version(engine_of, tmp_path):
    engine = engine_of(document(gpu_spec(0), versions={"dcgm": "5.0.0"}))
    renamed = tmp_path / "libdcgm.so.5"
    renamed.symlink_to(engine.library)
    other = tmp_path / "libdcgm.so.5.1"
    shutil.copy(engine.library, other)
    assert reason(open_library, str(other)) == "library_unsupported"
    assert reason(open_library, str(engine.library)) == "library_unsupported"


def test_a_file_that_is_no_library_is_missing(tmp_path):
    (tmp_path / "libdcgm.so.4").write_text("not one")
    assert reason(open_library, str(tmp_path / "libdcgm.so.4")) == "library_missing"


def test_a_function_that_the_library_does_not_have_is_a_reason(tmp_path):
    source, library = tmp_path / "empty.c", tmp_path / "libdcgm.so.4"
    source.write_text("int dcgmInit(void) { return 0; }")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    assert reason(open_library, str(library)) == "function_missing"


def test_every_function_that_we_call_is_in_the_fake_library(engine_of):
    library = open_library(str(engine_of(document(gpu_spec(0))).library))
    newer = {"dcgmConnect_v3", "dcgmGetCpuHierarchy_v2"} if library.major == 3 else set()
    assert set(SIGNATURES) - newer == set(library._functions)


def test_a_status_becomes_a_reason_and_a_message():
    error = StatusError("dcgmConnect_v2", -21)
    assert (error.reason, error.status) == ("connection_lost", -21)
    assert str(error) == "dcgmConnect_v2 answered -21 (connection lost)"
    assert StatusError("f", -99).reason == "engine_error"


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("localhost", Address("localhost:5555")),
        ("localhost:5556", Address("localhost:5556")),
        ("tcp://10.0.0.1:5555", Address("10.0.0.1:5555")),
        ("[::1]:5555", Address("[::1]:5555")),
        ("[::1]", Address("[::1]:5555")),
        ("tcp://[fe80::1%eth0]:1", Address("[fe80::1%eth0]:1")),
        ("gpu_engine.monitoring.svc", Address("gpu_engine.monitoring.svc:5555")),
        ("vsock://2", Address("vsock://2:5555", is_vsock=True)),
        ("vsock://2:5556", Address("vsock://2:5556", is_vsock=True)),
        ("unix:///tmp/nv-hostengine", Address("/tmp/nv-hostengine", is_unix=True)),
        ("/tmp/nv-hostengine", Address("/tmp/nv-hostengine", is_unix=True)),
    ],
)
def test_host_engine_addresses_are_accepted_in_every_usual_form(remote, address):
    assert parse_address(remote) == address


@pytest.mark.parametrize(
    "remote",
    [
        *(
            "",
            "host:",
            "host:port",
            "host:0",
            "host:70000",
            "host:\u0665",
            "host name",
            "host:5555\n",
            "a:b:5555",
            "::1",
        ),
        *("http://host:1/x", "tcp://", "user@host", "[::1", "[::1]5555", "[::1]:", "[host]:5555", "[]:5555"),
        *("unix://tmp/x", "unix://", f"/{'x' * 107}", "/tmp/\udcff"),
        *("vsock://host:5555", "vsock://2:x", "vsock://2:"),
    ],
)
def test_any_other_address_is_rejected_with_a_message_that_names_it(remote):
    with pytest.raises(AddressError) as caught:
        parse_address(remote)
    assert str(caught.value).startswith(f"{remote!r} is ")
