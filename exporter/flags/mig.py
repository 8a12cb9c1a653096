"""The flags of the command `mig`: which GPU and which geometry are meant."""

from exporter.flags.flag import Flag
from exporter.flags.values import text_value

MIG = (
    Flag("model", text_value("NAME"), "GPU model, as NVIDIA-H100-80GB-HBM3 or H100-80GB; alone: list what fits it"),
    Flag("geometry", text_value("PROFILE=N,..."), "GPU instances of one GPU, as 3g.40gb=2,1g.10gb=1"),
    Flag("node", text_value("NAME"), "a node: its model, the configuration that it asks for, and what it offers"),
)
