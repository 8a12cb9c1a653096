"""Situations that volumes decide."""

from tests.e2e.control_plane.situation import cpu, h100, holding, pod, situation

ZONE = "topology.kubernetes.io/zone"
UNTRIED = {"unconditional": ("p",)}


def storage_class(name, mode, provisioner="example.com/slow"):
    meta = {"name": name}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": meta,
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def volume_claim(name, storage, modes=("ReadWriteOnce",), volume=None):
    spec = {"accessModes": list(modes), "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": storage}
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
    if volume:
        spec["volumeName"] = volume
        made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        made["status"] = {"phase": "Bound", "accessModes": list(modes), "capacity": {"storage": "1Gi"}}
    return made


def volume_at(name, zone, namespace, claim, modes=("ReadWriteOnce",), storage="elsewhere"):
    """A volume of one zone, or of all, that is bound to a claim."""
    rule = {"key": ZONE, "operator": "In", "values": [zone]}
    place = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": list(modes),
        "storageClassName": storage,
        "csi": {"driver": "example.com", "volumeHandle": name},
        **({"nodeAffinity": place} if zone else {}),
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def mounting(made, claim):
    made["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    return made


def with_own_volume(made, storage):
    """The pod with a volume whose claim a controller makes for it."""
    template = {"spec": volume_claim("x", storage)["spec"]}
    made["spec"]["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]
    return made


SITUATIONS = (
    situation(
        "volume-unbound",
        "volume",
        h100("n1"),
        storage_class("never", "Immediate"),
        volume_claim("data", "never"),
        mounting(pod(), "data"),
    ),
    situation("volume-missing", "volume", h100("n1"), mounting(pod(), "data")),
    situation(
        "volume-not-provisioned",
        "volume",
        h100("n1"),
        storage_class("late", "WaitForFirstConsumer"),
        volume_claim("data", "late"),
        mounting(pod(), "data"),
        **UNTRIED,
    ),
    situation(
        "class-of-volumes-missing",
        "volume",
        h100("n1"),
        volume_claim("data", "nowhere"),
        mounting(pod(), "data"),
    ),
    situation(
        "volume-gone",
        "volume",
        h100("n1"),
        volume_claim("data", "elsewhere", volume="nowhere"),
        mounting(pod(), "data"),
    ),
    situation(
        "volume-elsewhere",
        "volume",
        h100("n1", labels={ZONE: "a"}),
        cpu("n2", {ZONE: "b"}),
        storage_class("elsewhere", "Immediate"),
        volume_at("disk", "b", "volume-elsewhere", "data"),
        volume_claim("data", "elsewhere", volume="disk"),
        mounting(pod(), "data"),
    ),
    situation(
        "volume-for-one-pod",
        "volume",
        h100("n1"),
        storage_class("one", "Immediate"),
        volume_at("single", None, "volume-for-one-pod", "data", ["ReadWriteOncePod"], "one"),
        volume_claim("data", "one", ["ReadWriteOncePod"], volume="single"),
        mounting(holding("h", "n1", 1), "data"),
        mounting(pod(), "data"),
    ),
    situation(
        "volume-of-the-pod-itself",
        "volume",
        h100("n1"),
        storage_class("never", "Immediate"),
        with_own_volume(pod(), "never"),
    ),
)
