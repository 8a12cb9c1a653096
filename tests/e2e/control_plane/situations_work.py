"""Situations of pods that wait for more than a node, of pods that are bound, and of work that gets no pods.

What a kubelet or an autoscaler writes is written by hand: neither runs.
"""

from tests.e2e.control_plane.situation import GPU, h100, holding, make, pod, situation

SCHEDULING = "scheduling.k8s.io"
KUEUE = "kueue.x-k8s.io"


def gated(made, *gates):
    made["spec"]["schedulingGates"] = [{"name": gate} for gate in gates]
    return made


def group(name, members):
    """A scheduling group of which this many pods are needed at once."""
    spec = {"schedulingPolicy": {"gang": {"minCount": members}}}
    return {"apiVersion": f"{SCHEDULING}/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def member(name, of_group, gpus=8):
    return pod(name, gpus, schedulingGroup={"podGroupName": of_group})


def priority(name, value, **fields):
    meta = {"name": name}
    return {"apiVersion": f"{SCHEDULING}/v1", "kind": "PriorityClass", "metadata": meta, "value": value, **fields}


def controller(version, kind, name, gpus, **spec):
    """A controller of pods that ask for GPUs."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": pod("x", gpus)["spec"]["containers"]}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {**spec, "template": template}}


def in_queue(made):
    made["metadata"]["labels"] = {f"{KUEUE}/queue-name": "big"}
    return made


def kept(made):
    """The pod with a finalizer, so that it stays when it is deleted."""
    made["metadata"]["finalizers"] = ["example.com/keep"]
    return made


def quota(gpus):
    spec = {"hard": {f"requests.{GPU}": str(gpus)}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "gpus"}, "spec": spec}


def most_for_a_container(gpus):
    spec = {"limits": [{"type": "Container", "max": {GPU: str(gpus)}}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "gpus"}, "spec": spec}


def path_of(namespace, name):
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def written(**statuses):
    """A step: wait until each pod is bound, then write what a kubelet says of its container."""

    def step(plane, namespace):
        for name, waiting in statuses.items():
            path = path_of(namespace, name.replace("_", "-"))
            plane.until(lambda path=path: plane.call("GET", path)["spec"].get("nodeName"))
            state = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
            state["state"] = {"waiting": waiting}
            plane.patch(f"{path}/status", {"status": {"containerStatuses": [state]}})

    return step


def announced(reason, message, name="p"):
    """A step: the event that an autoscaler writes about a pod."""

    def step(plane, namespace):
        path = path_of(namespace, name)
        plane.until(lambda: plane.call("GET", path)["status"].get("conditions"))
        uid = plane.call("GET", path)["metadata"]["uid"]
        about = {"kind": "Pod", "apiVersion": "v1", "name": name, "namespace": namespace, "uid": uid}
        plane.event(namespace, about, reason, message)

    return step


def preempted(plane, namespace):
    """Make a pod that has precedence, once the pods that it is to replace are bound."""
    for name in ("low1", "low2"):
        plane.until(lambda name=name: plane.call("GET", path_of(namespace, name))["spec"].get("nodeName"))
        plane.patch(f"{path_of(namespace, name)}/status", {"status": {"phase": "Running"}})
    make(plane, pod("p", 4, priorityClassName="first"), namespace)
    plane.until(lambda: plane.call("GET", path_of(namespace, "p"))["status"].get("nominatedNodeName"))


def freed(plane, namespace):
    """End the pod that has the GPUs, once the other one was tried."""
    plane.until(lambda: plane.call("GET", path_of(namespace, "p"))["status"].get("conditions"))
    plane.delete(path_of(namespace, "h"), {"gracePeriodSeconds": 0})
    plane.until(lambda: plane.call("GET", path_of(namespace, "p"))["spec"].get("nodeName"))


def removed(plane, namespace):
    """Remove the node of a pod that is bound."""
    plane.until(lambda: plane.call("GET", path_of(namespace, "p"))["spec"].get("nodeName"))
    plane.delete("/api/v1/nodes/n1", {})


def deleted(plane, namespace):
    """Delete a pod that was tried and that a finalizer keeps."""
    plane.until(lambda: plane.call("GET", path_of(namespace, "p"))["status"].get("conditions"))
    plane.delete(path_of(namespace, "p"), {"gracePeriodSeconds": 0})


def ungated(plane, namespace):
    """Remove the gate of a pod that then does not fit."""
    plane.patch(path_of(namespace, "p"), {"spec": {"schedulingGates": None}})

    def tried():
        conditions = plane.call("GET", path_of(namespace, "p"))["status"].get("conditions", ())
        return any(each["reason"] == "Unschedulable" for each in conditions)

    plane.until(tried)


PULL = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
CONFIG = {"reason": "CreateContainerConfigError", "message": 'secret "hf-token" not found'}

SITUATIONS = (
    situation("gate", "gated", h100("n1"), gated(pod(), "example.com/wait")),
    situation("queue", "queued", h100("n1"), gated(pod(), f"{KUEUE}/admission")),
    situation("queue-for-a-place", "queued", h100("n1"), gated(pod(), f"{KUEUE}/topology")),
    situation("two-gates", "gated", h100("n1"), gated(pod(), f"{KUEUE}/admission", "example.com/wait")),
    situation(
        "gate-removed", "unsatisfiable_size", h100("n1"), gated(pod("p", 9), "example.com/wait"), steps=(ungated,)
    ),
    situation("other-scheduler", "not_tried", h100("n1"), pod(schedulerName="nobody")),
    situation(
        "gang-incomplete",
        {"p0": "gang", "p1": "gang"},
        h100("n1"),
        h100("n2"),
        group("g", 3),
        member("p0", "g"),
        member("p1", "g"),
    ),
    situation(
        "gang-without-room",
        {"p0": "gang", "p1": "gang", "p2": "gang"},
        h100("n1"),
        h100("n2"),
        group("g", 3),
        member("p0", "g"),
        member("p1", "g"),
        member("p2", "g"),
    ),
    situation(
        "gang-with-one-too-many",
        {},
        h100("n1"),
        h100("n2"),
        group("g", 2),
        member("p0", "g"),
        member("p1", "g"),
        member("p2", "g"),
        controlled={"starting": 2, "insufficient_gpu": 1},
    ),
    situation("gang-without-group", "gang", h100("n1"), member("p", "nowhere")),
    situation(
        "gang-that-fits",
        {"p0": "starting", "p1": "starting"},
        h100("n1"),
        h100("n2"),
        group("g", 2),
        member("p0", "g"),
        member("p1", "g"),
    ),
    situation(
        "preempts",
        {"p": "preempting"},
        h100("n1"),
        priority("first", 1000),
        pod("low1", 4, terminationGracePeriodSeconds=300),
        pod("low2", 4, terminationGracePeriodSeconds=300),
        steps=(preempted,),
    ),
    situation(
        "never-preempts",
        "insufficient_gpu",
        h100("n1"),
        priority("patient", 1000, preemptionPolicy="Never"),
        holding("h", "n1"),
        pod(priorityClassName="patient"),
    ),
    situation("bound", "starting", h100("n1"), pod()),
    situation("freed-later", "starting", h100("n1"), holding("h", "n1"), pod("p", 8), steps=(freed,)),
    situation(
        "kubelet-says",
        {"pull": "image_pull", "config": "start_failed", "made": "starting"},
        h100("n1"),
        pod("pull"),
        pod("config"),
        pod("made"),
        steps=(written(pull=PULL, config=CONFIG, made={"reason": "ContainerCreating"}),),
    ),
    situation(
        "node-is-made",
        "scaling_up",
        h100("n1"),
        holding("h", "n1"),
        pod(),
        steps=(announced("TriggeredScaleUp", "pod triggered scale-up: [{gpus 1->2 (max: 4)}]"),),
    ),
    situation(
        "quota",
        {},
        h100("n1"),
        quota(0),
        controller("apps/v1", "Deployment", "dep", 1, replicas=1),
        controller("apps/v1", "StatefulSet", "sts", 1, replicas=1, serviceName="x"),
        controller("batch/v1", "Job", "job", 1, backoffLimit=2),
        blocked={"quota": 3},
    ),
    situation(
        "too-much-for-a-container",
        {},
        h100("n1"),
        most_for_a_container(1),
        controller("apps/v1", "Deployment", "dep", 2, replicas=1),
        blocked={"admission_failed": 1},
    ),
    situation(
        "workloads",
        {},
        h100("n1"),
        holding("h", "n1"),
        controller("batch/v1", "Job", "job", 4, parallelism=2, completions=2),
        controller("apps/v1", "Deployment", "dep", 9, replicas=3),
        controlled={"insufficient_gpu": 2, "unsatisfiable_size": 3},
    ),
    situation(
        "job-in-a-queue",
        {},
        h100("n1"),
        in_queue(controller("batch/v1", "Job", "job", 4, parallelism=2, completions=2, suspend=True)),
        blocked={"queued": 1},
    ),
    situation(
        "suspended-by-its-user",
        {},
        h100("n1"),
        controller("batch/v1", "Job", "job", 4, parallelism=2, completions=2, suspend=True),
    ),
    situation(
        "karpenter-makes-a-node",
        "scaling_up",
        h100("n1"),
        holding("h", "n1"),
        pod(),
        steps=(announced("Nominated", "Pod should schedule on: nodeclaim/gpus-x2x4f"),),
    ),
    situation(
        "autoscaler-will-not",
        "insufficient_gpu",
        h100("n1"),
        holding("h", "n1"),
        pod(),
        steps=(announced("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),),
    ),
    situation("node-gone", "node_unavailable", h100("n1"), pod(), steps=(removed,)),
    situation("deleted-while-pending", {}, h100("n1"), kept(pod("p", 9)), steps=(deleted,)),
)
