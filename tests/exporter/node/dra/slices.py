"""ResourceSlices and ResourceClaims as the API server has them, for the tests of DRA."""

import json

import msgspec

DRIVER = "gpu.nvidia.com"


PCI_BUS_ID = "resource.kubernetes.io/pciBusID"


def device(name, given=(), *, version="v1", shares=False, **texts):
    """A device with these attributes, `given` those whose names have a domain; `shares`: it has several users."""
    about = {"attributes": {key: {"string": text} for key, text in (*given, *texts.items())}}
    about |= {"allowMultipleAllocations": True} if shares else {}
    return {"name": name, "basic": about} if version == "v1beta1" else {"name": name, **about}


def slice_object(*devices, name="node-1-gpu", node="node-1", pool="node-1", generation=1, driver=DRIVER):
    return {
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": list(devices),
        },
    }


def claim_object(*results, name="train-gpu", namespace="team", requests=(), version="v1"):
    """A claim that was given these devices: (request, device) or (request, device, admin access)."""
    given = [
        {"request": request, "driver": DRIVER, "pool": "node-1", "device": found}
        | ({"adminAccess": True} if any(admin) else {})
        for request, found, *admin in results
    ]
    asked = requests or [request_object(request) for request in dict.fromkeys(each[0] for each in results)]
    if version == "v1beta1":
        asked = [{"name": each["name"], **each.get("exactly", each)} for each in asked]
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": asked}},
        "status": {"allocation": {"devices": {"results": given}}},
    }


def request_object(name, device_class="gpu.nvidia.com"):
    return {"name": name, "exactly": {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": 1}}


def raw(found):
    return msgspec.Raw(json.dumps(found).encode())
