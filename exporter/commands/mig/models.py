"""Which MIG profiles each GPU model has, and where on the GPU each of them may be. A table, as of AS_OF.

Profiles and sizes: NVIDIA's MIG User Guide, "Supported MIG Profiles"; places: what `nvidia-smi mig -lgipp` prints, the
same for all GPUs with eight memory slices; PCI device ids and the profiles of GH200, GB200 and B300: the default
configuration of the MIG manager in NVIDIA's GPU Operator.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

AS_OF = date(2026, 11, 30)
"""When the sources were read."""
MEDIA = "+me"
"""What names of profiles with the media extensions end with; a GPU has one device of these."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A kind of GPU instance."""

    name: str
    compute: int
    """Compute slices."""
    memory: int
    """Memory slices, one beside the other."""
    starts: tuple[int, ...]
    """The memory slices at which it may begin."""

    @property
    def gigabytes(self) -> int:
        """The memory that the name states, rounded by NVIDIA."""
        return int(re.sub(r"^.*\.(\d+)gb.*$", r"\1", self.name))


@dataclass(frozen=True, slots=True)
class MigModel:
    """GPUs that can be partitioned in the same way."""

    name: str
    products: tuple[tuple[str, ...], ...]
    """The words of which product names have all, for each of its products."""
    pci_ids: tuple[str, ...]
    """PCI device ids, in capitals."""
    compute: int
    memory: int
    profiles: tuple[MigProfile, ...]
    """The smallest first."""

    def profile(self, name: str) -> MigProfile | None:
        """The profile of a name; None where the model does not have it."""
        return next((each for each in self.profiles if each.name == name), None)


def _eight(name: str, gigabytes: str, products: Iterable[str], pci_ids: str) -> MigModel:
    """A model with seven compute and eight memory slices; `gigabytes` are those of its six sizes, as in the names."""
    one, double, two, three, four, seven = gigabytes.split()
    return MigModel(
        name,
        tuple(tuple(product.split()) for product in products),
        tuple(pci_ids.split()),
        7,
        8,
        (
            MigProfile(f"1g.{one}gb", 1, 1, tuple(range(7))),
            MigProfile(f"1g.{one}gb{MEDIA}", 1, 1, tuple(range(7))),
            MigProfile(f"1g.{double}gb", 1, 2, (0, 2, 4, 6)),
            MigProfile(f"2g.{two}gb", 2, 2, (0, 2, 4)),
            MigProfile(f"3g.{three}gb", 3, 4, (0, 4)),
            MigProfile(f"4g.{four}gb", 4, 4, (0,)),
            MigProfile(f"7g.{seven}gb", 7, 8, (0,)),
        ),
    )


_A30 = MigModel(
    "A30-24GB",
    (("A30",),),
    ("20B7",),
    4,
    4,
    (
        MigProfile("1g.6gb", 1, 1, (0, 1, 2, 3)),
        MigProfile(f"1g.6gb{MEDIA}", 1, 1, (0, 1, 2, 3)),
        MigProfile("2g.12gb", 2, 2, (0, 2)),
        MigProfile(f"2g.12gb{MEDIA}", 2, 2, (0, 2)),
        MigProfile("4g.24gb", 4, 4, (0,)),
    ),
)
MODELS = (
    _A30,
    _eight("A100-40GB", "5 10 10 20 20 40", ("A100 40GB", "A800 40GB"), "20B0 20B1 20F1 20F6"),
    _eight("A100-80GB", "10 20 20 40 40 80", ("A100 80GB", "A800 80GB"), "20B2 20B5 20F3 20F5"),
    _eight(
        "H100-80GB", "10 20 20 40 40 80", ("H100 80GB", "H100 PCIe", "H800 80GB", "H800 PCIe"), "2322 2324 2330 2331"
    ),
    _eight("H100-94GB", "12 24 24 47 47 94", ("H100 NVL", "H100 94GB", "H800 NVL"), "2321 233A"),
    _eight("H100-96GB", "12 24 24 48 48 96", ("H100 96GB", "GH200 480GB", "H20"), "20B6 2329 233D 2342"),
    _eight("H200-141GB", "18 35 35 71 71 141", ("H200",), "2335 233B"),
    _eight("GH200-144GB", "18 36 36 72 72 144", ("GH200 144G",), "2348"),
    _eight("B200-180GB", "23 45 45 90 90 180", ("B200",), "2901"),
    _eight("GB200-186GB", "23 47 47 93 93 186", ("GB200",), "2941"),
    _eight("B300-269GB", "34 67 67 135 135 269", ("B300",), "3182"),
)


def model_of(product: str) -> MigModel | None:
    """The row of a product name such as `NVIDIA-H100-80GB-HBM3`, or of the name of a row; None where there is none."""
    words = set(re.split(r"[-_\s]+", product))
    named = (model for model in MODELS if model.name == product)
    return next(named, None) or next((model for model in MODELS if any(words >= set(p) for p in model.products)), None)


def models_of_device(device: str) -> list[MigModel]:
    """The rows of a PCI device as the MIG manager's `device-filter` writes it: `0x233010DE`, device and vendor."""
    found = re.fullmatch(r"0x([0-9a-fA-F]{4})10[dD][eE]", device)
    return [model for model in MODELS if found and found[1].upper() in model.pci_ids]
