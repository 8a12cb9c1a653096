"""Prints the bill of materials of the run-time packages as CycloneDX JSON, made of requirements.lock.

`python -m scripts.sbom > deploy/generated/sbom.cdx.json`. The image has it in /usr/share/doc/gpugauge. It has no date
and no serial number, so that it is the same whenever it is made of the same lock file.
"""

import json
import re
from pathlib import Path
from typing import Any

from exporter import VERSION

LOCK = Path(__file__).parent.parent / "requirements.lock"
_PACKAGE = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", re.MULTILINE)


def bill_of_materials(lock: str) -> dict[str, Any]:
    """The packages of a lock file, each with the one version that may be installed."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "gpugauge",
                "name": "gpugauge",
                "version": VERSION,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [_component(name, version) for name, version in _PACKAGE.findall(lock)],
    }


def _component(name: str, version: str) -> dict[str, str]:
    purl = f"pkg:pypi/{name.lower()}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


if __name__ == "__main__":
    print(json.dumps(bill_of_materials(LOCK.read_text(encoding="utf-8")), indent=1))
