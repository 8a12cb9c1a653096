"""What is written about two expositions that differ."""

from bench.difference import difference

ONE = """# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",hostname="localhost"} 40
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b",hostname="localhost"} 41
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a",hostname="localhost",err_code="0"} 0
"""
OTHER = """# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",hostname="node-1",pod=""} 40.0000001
DCGM_FI_DEV_GPU_TEMP{gpu="1",UUID="GPU-b",hostname="node-1",pod=""} 42
# TYPE gpugauge_build_info gauge
gpugauge_build_info{version="1"} 1
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",hostname="node-1",GPU_I_ID="3"} 7
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",hostname="node-1",GPU_I_ID="4"} 8
"""


def test_equal_expositions_differ_in_nothing():
    assert list(difference(ONE, ONE)) == ["\nseries: 3 and 3; in both 3, of which 3 with equal values"]


def test_labels_values_and_series_that_differ_are_named():
    assert list(difference(ONE, OTHER)) == [
        "\nseries: 3 and 4; in both 2, of which 1 with equal values",
        "label GPU_I_ID: none and 3 and 1 more",
        "label err_code: 0 and none",
        "label hostname: localhost and node-1",
        "value differs: DCGM_FI_DEV_GPU_TEMP{UUID='GPU-b',gpu='1'}: 41 and 42",
        "only in the first, 1 series each with the labels UUID, gpu: DCGM_FI_DEV_XID_ERRORS",
        "only in the second, 2 series each with the labels GPU_I_ID, UUID, gpu: DCGM_FI_DEV_FB_USED",
    ]
