"""Checks of flags, counters file and fields, and of the port."""

import pytest

from exporter.node.counters_watch import UnusableCountersError
from exporter.node.devices.readings.readings import Rejection, RejectionReason
from exporter.node.doctor import counters, port
from exporter.node.doctor.reasons import DoctorReason
from tests.exporter.node.doctor.nodes import NO_SOCKETS, examination, finding, findings, gpu, read

THREE = "DCGM_FI_DEV_GPU_TEMP, gauge, T.\nDCGM_FI_DEV_SM_CLOCK, gauge, C.\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, A."


def test_what_is_not_used_as_given_is_a_note(node):
    found = findings(counters, "flags and variables", examination(node, "--fake-gpus", "-c", "5"))
    assert [(str(each.status), each.reason) for each in found] == [("note", DoctorReason.CONFIGURATION)] * 2
    assert finding(counters, "flags and variables", examination(node))[0] == "ok"


def test_a_file_that_cannot_be_used_is_a_failure_with_its_message(node):
    error = UnusableCountersError("counters file /x cannot be read: it is a FIFO", "cannot be read")
    examined = examination(node, counters=error, attempts=(read(gpu()),))
    assert finding(counters, "counters file", examined) == ("failed", DoctorReason.COUNTERS_UNUSABLE, str(error))
    assert finding(counters, "fields", examined)[0] == "skipped"


def test_rows_that_cannot_be_used_are_named_with_their_lines_and_the_rest_counted(node):
    bad = "".join(f"NONE_{n}, gauge, x\n" for n in range(5))
    status, reason, detail = finding(counters, "counters file", examination(node, counters=f"{THREE}\n{bad}"))
    assert (status, reason) == ("failed", DoctorReason.COUNTERS_ROWS_REJECTED)
    assert detail.startswith("counters.csv, line 4: unknown field 'NONE_0'; ")
    assert detail.endswith("; and 2 more")


def test_rows_that_no_source_reads_are_a_note(node):
    rows = f"{THREE}\nDCGM_FI_DEV_CONNECTX_HEALTH, gauge, x\n"
    note, fine = findings(counters, "counters file", examination(node, counters=rows))
    assert (str(note.status), note.reason, str(fine.status)) == ("note", DoctorReason.FIELDS_NOT_READ, "ok")


def test_fields_without_values_are_named_by_reason_and_only_a_lacking_permission_is_a_failure(node):
    rejections = (
        Rejection(100, RejectionReason.NOT_SUPPORTED, 2),
        Rejection(1004, RejectionReason.NO_PERMISSION, 1),
        Rejection(9999, RejectionReason.BLANK, 1),
    )
    examined = examination(node, counters=THREE, attempts=(read(gpu(), rejections=rejections),))
    assert [(str(each.status), each.reason, each.detail) for each in findings(counters, "fields", examined)] == [
        ("failed", RejectionReason.NO_PERMISSION, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE on 1"),
        ("note", RejectionReason.NOT_SUPPORTED, "DCGM_FI_DEV_SM_CLOCK on 2"),
    ]


def test_fields_that_all_have_values_are_counted(node):
    assert finding(counters, "fields", examination(node, counters=THREE, attempts=(read(gpu()),)))[0] == "ok"
    assert finding(counters, "fields", examination(node, counters=THREE))[0] == "skipped"


def listening(node, *words, host="0.0.0.0", sockets=(77,), **process):
    node.listens(9400, 77, host)
    if process:
        node.process(12, *process["words"], sockets=sockets)
    return examination(node, *words)


def test_another_process_at_the_port_is_named(node):
    examined = listening(node, words=("/usr/bin/dcgm-exporter", "--token=secret"))
    assert finding(port, "port", examined) == (
        "failed",
        DoctorReason.PORT_IN_USE,
        ":9400: /usr/bin/dcgm-exporter, process 12",
    )


def test_a_process_in_another_container_cannot_be_named(node):
    assert "cannot be seen from here" in finding(port, "port", listening(node))[2]


@pytest.mark.parametrize("words", [("python", "/usr/local/bin/gpugauge", "-k"), ("python", "-m", "exporter", "node")])
def test_gpugauge_itself_at_the_port_is_a_note(node, words):
    assert finding(port, "port", listening(node, words=words))[0] == "note"


@pytest.mark.parametrize(
    ("host", "address", "status"),
    [
        ("127.0.0.1", "127.0.0.1:9400", "failed"),
        ("127.0.0.1", "10.0.0.1:9400", "ok"),
        ("127.0.0.1", ":9400", "failed"),
        ("0.0.0.0", "10.0.0.1:9400", "failed"),
        ("127.0.0.1", "localhost:9400", "failed"),
        ("0.0.0.0", ":9401", "ok"),
        ("0.0.0.0", "127.0.0.1:0", "ok"),
    ],
)
def test_only_an_address_that_clashes_is_in_use(node, host, address, status):
    assert finding(port, "port", listening(node, "--address", address, host=host))[0] == status


def test_a_socket_of_ipv6_is_found_and_a_line_that_is_cut_off_is_left_out(node):
    address = "00000000000000000000000001000000"
    rest = "00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 5 1"
    node.file("/proc/net/tcp6", f"{NO_SOCKETS}0: {address}:24B8 {rest}\n1: 0000")
    assert finding(port, "port", examination(node, "--address", "[::1]:9400"))[0] == "failed"


def test_every_address_is_examined_unless_systemd_has_the_socket(node):
    both = examination(node, "--health-address", ":9500")
    assert [each.detail for each in findings(port, "port", both)] == [":9400 is free", ":9500 is free"]
    assert finding(port, "port", examination(node, "--web-systemd-socket"))[0] == "skipped"
