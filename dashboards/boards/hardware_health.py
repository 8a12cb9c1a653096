"""The Grafana dashboard `gpu-health`: which GPUs are broken, degraded or hot, and what they reported.

What a GPU reports once, such as an XID, is read from the exporters; what is drawn over time is recorded.
"""

from dashboards import hardware
from dashboards import queries as q
from dashboards.boards.device_tables import GPU_COLUMNS, XID_COLUMN, XIDS, named
from dashboards.columns import CLUSTER_COLUMN, NODE_COLUMN, count
from dashboards.layout import PanelRow, SizedPanel, sized
from dashboards.links import panel_link
from dashboards.panels import datasource, graph, stat, table, variable
from dashboards.queries import CLUSTER, GPU, NODE
from dashboards.states import NO_OR_YES, NONE_OR_CRITICAL, NONE_OR_SOME, RECOVERY
from dashboards.style import TABLE_ROWS, Column, Dashboard, Query, Unit
from dashboards.xids import CRITICAL

DAY = 86_400
OBSERVED = f"gpugauge_devices_observed{{{NODE}}}"
_HOT = "hw_slowdown|hw_thermal|hw_power_brake|sw_thermal"
"""Clock events that are no normal operation, as reaching the power limit is."""
_LOST = f"max by ({GPU}, gpu) (gpugauge_device_up{{{NODE}}}) == 0"
_CRITICAL_XIDS = f'gpugauge_xid_last_timestamp_seconds{{{NODE}, xid=~"{"|".join(CRITICAL)}"}} > time() - {DAY}'
_RATIO_OF_LIMIT = f"sum(node:gpu_power_watts:sum{{{NODE}}}) / sum(node:gpu_power_limit_watts:sum{{{NODE}}})"

NOW = PanelRow(
    "Now",
    sized(
        4,
        4,
        stat(
            "GPUs not readable",
            "GPUs that the driver knows and that cannot be read: lost, hung, or in need of a reset. They are listed "
            "below. No data means that no exporter answers.",
            Unit.COUNT,
            q.count_or_zero(_LOST, f"gpugauge_device_up{{{NODE}}}"),
            NONE_OR_CRITICAL,
            link=panel_link("gpu-health", "node", panel="GPUs that cannot be read"),
        ),
        stat(
            "GPUs missing",
            "GPUs that a node should have, by option, by the PCI bus or because they were there before, and that are "
            "not observed.",
            Unit.COUNT,
            f"sum(clamp_min(max by (cluster, node) (gpugauge_devices_expected{{{NODE}}}) "
            f"- max by (cluster, node) ({OBSERVED}), 0))",
            NONE_OR_CRITICAL,
            link=panel_link("gpu-exporter", "node", panel="Nodes with fewer GPUs than expected"),
        ),
        stat(
            "Critical XIDs, 24 h",
            "GPUs that reported an XID of the critical class within 24 hours: they cannot be used until they are "
            "reset, repaired or replaced.",
            Unit.COUNT,
            q.count_or_zero(f"group by ({GPU}) ({_CRITICAL_XIDS})", OBSERVED),
            NONE_OR_CRITICAL,
            link=panel_link("gpu-health", "node", panel="XIDs"),
        ),
        stat(
            "Row remaps failed",
            "GPUs on which a faulty memory row could not be replaced: replace the GPU. No data means that no exporter "
            "exposes DCGM_FI_DEV_ROW_REMAP_FAILURE.",
            Unit.COUNT,
            q.count_or_zero(f"{hardware.remap_failed(NODE)} == 1", hardware.remap_failed(NODE)),
            NONE_OR_CRITICAL,
            link=panel_link("gpu-health", "node", panel="Memory of GPUs"),
        ),
        stat(
            "Slowed by heat or power",
            "GPUs whose clocks are held down now by temperature or by the power supply, of the most frequent of these "
            "reasons. Reaching the power limit, as usual under full load, does not count.",
            Unit.COUNT,
            f'max(sum by (reason) (node:gpu_clock_events:count{{{NODE}, reason=~"{_HOT}"}})) or 0 * count({OBSERVED})',
            NONE_OR_SOME,
            link=panel_link("gpu-health", "node", panel="Nodes with slowed GPUs"),
        ),
        stat(
            "Power of the limit",
            "Power that all GPUs draw now as a share of the limits in force. Near 100 % in a training cluster is "
            "normal; compare it with what the room can supply.",
            Unit.RATIO,
            _RATIO_OF_LIMIT,
        ),
    ),
)

EVENTS = PanelRow(
    "Reported by GPUs",
    (
        SizedPanel(
            table(
                "XIDs",
                "The last XID of each code and GPU, the newest first, and how often it came since the exporter "
                f"started. The runbook says what to do for each class. At most {TABLE_ROWS} rows.",
                (
                    Column("Value #A", "Last", Unit.AGE, width=140),
                    XID_COLUMN,
                    *GPU_COLUMNS,
                    CLUSTER_COLUMN,
                    count("Value #B", "Count", 80),
                ),
                *XIDS,
                sort="Last",
            ),
            16,
            8,
        ),
        SizedPanel(
            graph(
                "GPUs with an XID in the past hour",
                "By code. One code on many GPUs at once hints at a driver, a job or a fabric; on one GPU at its "
                "hardware.",
                Unit.COUNT,
                Query(
                    f"count by (xid) (group by ({GPU}, xid) (gpugauge_xid_last_timestamp_seconds{{{NODE}}} "
                    "> time() - 3600))",
                    "XID {{xid}}",
                ),
            ),
            8,
            8,
        ),
    ),
)

MEMORY = PanelRow(
    "Memory and links",
    (
        SizedPanel(
            table(
                "Memory of GPUs",
                "GPUs with replaced or faulty memory rows, memory errors that could not be corrected since the driver "
                "was loaded, or a recovery action. Replaced rows alone are no reason to act; a failed replacement is. "
                "Pending rows, errors and actions appear where the counters file has DCGM_FI_DEV_ROW_REMAP_PENDING, "
                "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL and DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION.",
                (
                    *GPU_COLUMNS,
                    CLUSTER_COLUMN,
                    count("Value #A", "Rows, uncorrected", 140),
                    count("Value #B", "Rows, corrected", 130),
                    Column("Value #C", "Failed", Unit.COUNT, states=NO_OR_YES, width=80),
                    Column("Value #D", "Pending", Unit.COUNT, states=NO_OR_YES, width=80),
                    count("Value #E", "Errors", 80),
                    Column("Value #F", "Recovery", Unit.COUNT, states=RECOVERY, width=130),
                ),
                *(
                    f"topk({TABLE_ROWS}, {named(f'({expression} > 0)')})"
                    for expression in (
                        hardware.remapped(NODE, corrected=False),
                        hardware.remapped(NODE, corrected=True),
                        hardware.remap_failed(NODE),
                        hardware.remap_pending(NODE),
                        hardware.ecc_errors(NODE),
                        hardware.recovery_action(NODE),
                    )
                ),
                sort="Rows, uncorrected",
            ),
            24,
            7,
        ),
        SizedPanel(
            table(
                "PCIe and NVLink errors",
                "GPUs on which PCIe packets were sent again or NVLink packets had a wrong checksum within the past "
                "hour, or that use fewer PCIe lanes than they could: a loose or dirty connector. NVLink errors and "
                "lanes appear where the counters file has DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, "
                "DCGM_FI_DEV_PCIE_LINK_WIDTH and DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH.",
                (
                    *GPU_COLUMNS,
                    CLUSTER_COLUMN,
                    count("Value #A", "PCIe replays", 120),
                    count("Value #B", "NVLink errors", 120),
                    count("Value #C", "PCIe lanes", 110),
                ),
                *(
                    f"topk({TABLE_ROWS}, {named(f'({expression})')})"
                    for expression in (
                        hardware.pcie_replays(NODE, "1h"),
                        hardware.nvlink_errors(NODE, "1h"),
                        hardware.narrow_links(NODE),
                    )
                ),
                sort="PCIe replays",
            ),
            14,
            6,
        ),
        SizedPanel(
            table(
                "GPUs that cannot be read",
                "GPUs that the driver knows and that give no values. The state of their node's exporter says why. "
                "Empty when there are none.",
                (*GPU_COLUMNS, CLUSTER_COLUMN),
                f"topk({TABLE_ROWS}, 1 + ({_LOST}))",
            ),
            10,
            6,
        ),
    ),
)

HEAT = PanelRow(
    "Heat, power and clocks",
    (
        SizedPanel(
            graph(
                "GPUs with slowed clocks, by reason",
                "GPUs whose clocks are held down, by reason; one GPU may have several. power_cap is usual under "
                "full load, the others are not: check cooling and power supply.",
                Unit.COUNT,
                Query(f"sum by (reason) (node:gpu_clock_events:count{{{NODE}}})", "{{reason}}"),
            ),
            8,
            9,
        ),
        SizedPanel(
            graph(
                "Power and limit",
                "Power that the GPUs draw together, and the sum of their limits in force.",
                Unit.WATT,
                Query(f"sum(node:gpu_power_watts:sum{{{NODE}}})", "drawn"),
                Query(f"sum(node:gpu_power_limit_watts:sum{{{NODE}}})", "limit", dashed=True),
            ),
            8,
            9,
        ),
        SizedPanel(
            graph(
                "Hottest GPU of a node",
                "The highest temperature of all nodes, and what a tenth of the nodes exceeds. Which temperature is too "
                "high depends on the model: see slowed clocks.",
                Unit.CELSIUS,
                Query(f"max(node:gpu_temperature_celsius:max{{{NODE}}})", "highest"),
                Query(f"quantile(0.9, node:gpu_temperature_celsius:max{{{NODE}}})", "one node of ten is above"),
                Query(f"quantile(0.5, node:gpu_temperature_celsius:max{{{NODE}}})", "half of the nodes is above"),
            ),
            8,
            9,
        ),
        SizedPanel(
            table(
                "Nodes with slowed GPUs",
                "How many GPUs of a node have which reason now, most first. At most 20 rows.",
                (NODE_COLUMN, CLUSTER_COLUMN, Column("reason", "Reason"), count("Value", "GPUs")),
                f"topk(20, node:gpu_clock_events:count{{{NODE}}})",
                sort="GPUs",
            ),
            12,
            8,
        ),
        SizedPanel(
            table(
                "Hottest nodes",
                "The 20 nodes with the hottest GPU, and the power that their GPUs draw of their limit.",
                (
                    NODE_COLUMN,
                    CLUSTER_COLUMN,
                    Column("Value #A", "Hottest", Unit.CELSIUS, width=110),
                    Column("Value #B", "Power of limit", Unit.RATIO, bar=True),
                ),
                f"topk(20, node:gpu_temperature_celsius:max{{{NODE}}})",
                f"node:gpu_power_watts:sum{{{NODE}}} / node:gpu_power_limit_watts:sum{{{NODE}}} "
                f"and topk(20, node:gpu_temperature_celsius:max{{{NODE}}})",
                sort="Hottest",
            ),
            12,
            8,
        ),
    ),
)

DASHBOARD = Dashboard(
    uid="gpu-health",
    title="GPU hardware health",
    description="GPUs that are lost, broken, degraded, hot or slowed, their XIDs, memory errors and links.",
    tags=("health",),
    variables=(
        datasource(),
        variable("cluster", "Cluster", "Clusters to show.", "label_values(cluster:gpus:count, cluster)"),
        variable("node", "Node", "Nodes to show.", f"label_values(node:gpus:count{{{CLUSTER}}}, node)"),
    ),
    rows=(NOW, EVENTS, MEMORY, HEAT),
    since="now-24h",
)
