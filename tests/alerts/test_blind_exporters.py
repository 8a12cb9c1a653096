"""Alerts on exporters that answer and do not expose what they should, and on how they are set up."""

import pytest

from alerts.alerting import blind_exporters, exporter_settings
from tests.alerts.fleet import always
from tests.alerts.promtool import RuleFixture
from tests.alerts.targets import EXPORTERS, check, firing, node_target, on_node, on_watcher, texts

pytestmark = pytest.mark.prometheus

GROUPS = (*EXPORTERS, blind_exporters.GROUP, exporter_settings.GROUP)
EMPTY, STALE, UNATTRIBUTED = "GPUExporterEmpty", "GPUExporterStale", "GPUAttributionBroken"
NOW = "0+30x200"


def test_f7_an_exporter_that_answers_and_reads_no_gpu_is_empty(tmp_path):
    fixture = RuleFixture()
    for node, observed, expected, source in (
        ("sound", 8, 8, 1),
        ("one-left", 1, 8, 1),
        ("no-driver", 0, 8, 1),
        ("source-down", 8, 8, 0),
        ("without-gpus", 0, 0, 0),
        ("upgraded", 0, 8, 0),
        ("virtual-machines", 0, 8, 0),
    ):
        node_target(fixture, node, always(1))
        on_node(fixture, "gpugauge_devices_observed", {"node": node}, always(observed))
        on_node(fixture, "gpugauge_devices_expected", {"node": node}, always(expected))
        on_node(fixture, "gpugauge_source_up", {"node": node, "source": "nvml"}, always(source))
        on_node(fixture, "gpugauge_source_up", {"node": node, "source": "dcgm"}, always(0))
    node_target(fixture, "nothing-at-all", always(1))
    node_target(fixture, "down", always(0))
    on_watcher(fixture, "gpugauge_node_maintenance", {"node": "upgraded", "reason": "driver_upgrade"}, always(1))
    machines = {"node": "virtual-machines", "resource": "nvidia_com_GA102GL_A10"}
    on_watcher(fixture, "gpugauge_node_gpu_capacity", machines, always(8))
    firing(fixture, EMPTY, 9, "node")
    firing(fixture, EMPTY, 11, "node", "no-driver", "source-down", "nothing-at-all")
    check(tmp_path, fixture, groups=GROUPS)


def test_f7_data_that_are_frozen_for_five_minutes_are_stale(tmp_path):
    fixture = RuleFixture()
    for node, values in (("fresh", NOW), ("frozen", "0+30x19 570x200"), ("slow", "0+30x19 570x9 870+30x200")):
        on_node(fixture, "gpugauge_last_collection_timestamp_seconds", {"node": node}, values)
    for minute, found in ((19, ()), (21, ("frozen",)), (60, ("frozen",))):
        firing(fixture, STALE, minute, "node", *found)
    texts(
        fixture,
        STALE,
        40,
        {"node": "frozen"},
        "The GPU exporter of node frozen exposes data of 30 minutes ago.",
        "What the GPU exporter of node frozen exposes was read 30 minutes ago. Panels and alerts take it for the "
        "present.",
    )
    check(tmp_path, fixture, groups=GROUPS)


def test_allocations_that_are_not_known_while_pods_have_gpus_are_reported(tmp_path):
    fixture = RuleFixture()
    for node, requested, allocated, kubelet in (
        ("sound", 8, 1, 1),
        ("unused", 0, 0, 1),
        ("nothing-listed", 8, 0, 1),
        ("kubelet-down", 0, None, 0),
    ):
        on_node(fixture, "gpugauge_devices_observed", {"node": node}, always(8))
        on_node(fixture, "gpugauge_source_up", {"node": node, "source": "kubelet"}, always(kubelet))
        resource = {"node": node, "resource": "nvidia_com_gpu"}
        on_watcher(fixture, "gpugauge_node_gpu_requested", resource, always(requested))
        if allocated is not None:
            device = {"node": node, "UUID": f"GPU-{node}"}
            on_node(fixture, "gpugauge_device_allocated_pods", device, always(allocated))
    firing(fixture, UNATTRIBUTED, 14, "node")
    firing(fixture, UNATTRIBUTED, 16, "node", "nothing-listed", "kubelet-down")
    check(tmp_path, fixture, groups=GROUPS)


def test_sources_that_fail_now_and_then_are_a_digest_and_a_second_source_of_gpus_is_not_missed(tmp_path):
    fixture = RuleFixture()
    for node, source, values in (
        ("kubelet-fails", "kubelet", " ".join(["0 1x8"] * 25)),
        ("kubelet-failed-once", "kubelet", "1x39 0 1x200"),
        ("gpus-fail", "nvml", " ".join(["0 1x8"] * 25)),
        ("without-dcgm", "nvml", always(1)),
    ):
        on_node(fixture, "gpugauge_source_up", {"node": node, "source": source}, values)
    on_node(fixture, "gpugauge_source_up", {"node": "without-dcgm", "source": "dcgm"}, always(0))
    firing(fixture, "GPUExporterCollectionErrors", 50, "node", "kubelet-fails", "gpus-fail")
    check(tmp_path, fixture, groups=GROUPS)


def test_ids_that_match_no_device_are_told_apart_by_their_reason(tmp_path):
    fixture = RuleFixture()
    for node, resource, reason in (
        ("lost", "nvidia_com_gpu", "no_such_gpu"),
        ("changed", "nvidia_com_mig_1g_10gb", "partitioned"),
        ("machine", "nvidia_com_GA102GL_A10", "no_such_gpu"),
        ("spelling", "nvidia_com_gpu", "unknown_form"),
        ("vendor", "amd_com_gpu", "other_vendor"),
        ("init", "nvidia_com_gpu", "init_container"),
    ):
        labels = {"node": node, "resource": resource, "reason": reason}
        on_node(fixture, "gpugauge_unmatched_device_ids", labels, always(2))
    firing(fixture, "GPUAllocatedDeviceUnseen", 9, "node")
    firing(fixture, "GPUAllocatedDeviceUnseen", 11, "node", "lost", "changed")
    firing(fixture, "GPUUnmatchedDevices", 29, "node")
    firing(fixture, "GPUUnmatchedDevices", 31, "node", "spelling")
    check(tmp_path, fixture, groups=GROUPS)


def test_values_that_cannot_be_true_are_a_digest_and_blank_ones_are_not(tmp_path):
    fixture = RuleFixture()
    for node, reason, values in (
        ("absurd", "out_of_range", "0+1x400"),
        ("blank", "blank", "0+1x400"),
        ("once", "out_of_range", "0x19 1x400"),
    ):
        labels = {"node": node, "field": "DCGM_FI_DEV_GPU_TEMP", "reason": reason}
        on_node(fixture, "gpugauge_rejected_values_total", labels, values)
    firing(fixture, "GPUValuesRejected", 70, "node", "absurd")
    check(tmp_path, fixture, groups=GROUPS)


def test_a_counters_file_that_is_rejected_in_whole_or_in_part_is_reported(tmp_path):
    fixture = RuleFixture()
    for node, reloaded, rows in (("sound", 1, 0), ("unreadable", 0, 0), ("rows", 1, 2)):
        on_node(fixture, "gpugauge_config_last_reload_successful", {"node": node}, always(reloaded))
        on_node(fixture, "gpugauge_config_rejected_rows", {"node": node}, always(rows))
    firing(fixture, "GPUExporterConfigRejected", 9, "node")
    firing(fixture, "GPUExporterConfigRejected", 11, "node", "unreadable", "rows")
    check(tmp_path, fixture, groups=GROUPS)


def test_an_audit_log_that_is_not_written_is_reported(tmp_path):
    fixture = RuleFixture()
    for node, written, failures in (
        ("sound", "0+120x60", "0x400"),
        ("silent", "0x400", "0x400"),
        ("failed", "0+30x400", "0x39 1x400"),
    ):
        on_node(fixture, "gpugauge_audit_last_write_timestamp_seconds", {"node": node}, written)
        on_node(fixture, "gpugauge_audit_write_failures_total", {"node": node}, failures)
    firing(fixture, "GPUAuditLogBroken", 10, "node")
    firing(fixture, "GPUAuditLogBroken", 12, "node", "silent")
    firing(fixture, "GPUAuditLogBroken", 22, "node", "silent", "failed")
    firing(fixture, "GPUAuditLogBroken", 55, "node", "silent")
    check(tmp_path, fixture, groups=GROUPS)


@pytest.mark.slow
def test_files_versions_and_drivers_that_differ_for_a_day_are_a_digest(tmp_path):
    fixture = RuleFixture()
    long = "1x3200"
    for node, pool, sha, driver in (
        ("a-1", "a", "1", "570"),
        ("a-2", "a", "2", "580"),
        ("b-1", "b", "3", "570"),
        ("b-2", "b", "3", "570"),
    ):
        on_node(fixture, "gpugauge_config_info", {"node": node, "sha256": sha}, long)
        device = {"node": node, "UUID": f"GPU-{node}", "driver_version": driver}
        on_node(fixture, "gpugauge_device_info", device, long)
        on_node(fixture, "gpugauge_build_info", {"node": node, "version": driver}, long)
        on_watcher(fixture, "gpugauge_node_info", {"node": node, "pool": pool}, long)
    for alert in ("GPUExporterConfigDiffers", "GPUDriverVersionMixed"):
        firing(fixture, alert, 23 * 60, "pool")
        firing(fixture, alert, 24 * 60 + 2, "pool", "a")
    firing(fixture, "GPUExporterVersionSkew", 5 * 60, "severity")
    firing(fixture, "GPUExporterVersionSkew", 6 * 60 + 2, "severity", "warning")
    check(tmp_path, fixture, groups=(exporter_settings.GROUP,))
