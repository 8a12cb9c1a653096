"""A real control plane as its administrator sees it: objects, tokens, manifests, an end and a new start."""

import base64
import functools
import json
import ssl
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

from tests import waiting
from tests.e2e.control_plane import processes

LIMIT_SECONDS = 120.0
until = functools.partial(waiting.until, seconds=LIMIT_SECONDS, every=0.1)
JSON, MERGE, APPLY = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"


class ControlPlane:
    """Sends requests to a running API server as its administrator."""

    def __init__(self, port, etcd_port, folder):
        self._etcd_url = f"http://127.0.0.1:{etcd_port}/v3/kv"
        self.url = f"https://127.0.0.1:{port}"
        self.ca = folder / "ca.pem"
        self._folder = folder
        self._context = ssl.create_default_context(cafile=self.ca)
        self._kinds = {}
        self.api_server = None

    def call(self, method, path, body=None, kind=JSON, token=processes.ADMIN):
        """The decoded answer. Raises urllib.error.HTTPError with the API server's message in its reason."""
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": kind},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return json.load(answer) if "json" in answer.headers.get("Content-Type", "") else answer.read()
        except urllib.error.HTTPError as error:
            with error:
                error.msg = f"{method} {path}: {error.read().decode()[:2000]}"
            raise

    def create(self, path, given):
        """Create an object, then set the status that it was given with: the API server ignores it at creation."""
        status = given.get("status")
        made = self.call("POST", path, given)
        if status:
            self.patch(f"{path}/{made['metadata']['name']}/status", {"status": status})
        return made

    def patch(self, path, change):
        return self.call("PATCH", path, change, MERGE)

    def delete(self, path, options):
        """Delete an object, or all of a collection; one that has gone already is as good."""
        try:
            self.call("DELETE", path, options)
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise

    def items(self, path):
        return self.call("GET", path)["items"]

    def apply(self, given, *, dry_run=False):
        """Apply an object of a manifest on the server's side."""
        name = given["metadata"]["name"]
        query = "?fieldManager=test&force=true" + ("&dryRun=All" if dry_run else "")
        return self.call("PATCH", f"{self.path_of(given)}/{name}{query}", given, APPLY)

    def path_of(self, given):
        """Where objects like this one are, by what the API server says of its kinds."""
        root, kind = self._kind(given)
        namespace = f"/namespaces/{given['metadata']['namespace']}" if kind["namespaced"] else ""
        return f"{root}{namespace}/{kind['name']}"

    def namespaced(self, given):
        """Whether objects like this one are in namespaces."""
        return self._kind(given)[1]["namespaced"]

    def _kind(self, given):
        version = given["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._kinds:
            listed = self.call("GET", root)["resources"]
            self._kinds[version] = {each["kind"]: each for each in listed if "/" not in each["name"]}
        return root, self._kinds[version][given["kind"]]

    def until(self, condition, seconds=LIMIT_SECONDS):
        """Wait until the condition is true and return what it returned."""
        return until(condition, seconds=seconds)

    def event(self, namespace, about, reason, message):
        """Write an event about an object, as a component does that does not run here."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        given = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{about['name']}.", "namespace": namespace},
            "involvedObject": about,
            "reason": reason,
            "message": message,
            "type": "Normal",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self.create(f"/api/v1/namespaces/{namespace}/events", given)

    def move_on(self):
        """Let etcd's revision move on behind the API server's back, as another API server's writes do."""
        for _ in range(5):
            self._etcd("put", {name: base64.b64encode(b"/test").decode() for name in ("key", "value")})

    def forget(self):
        """Let etcd drop all history before its newest revision, as API servers have it do every few minutes."""
        self.move_on()
        newest = self._etcd("range", {"key": base64.b64encode(b"/test").decode()})["header"]["revision"]
        self._etcd("compaction", {"revision": newest, "physical": True})

    def _etcd(self, call, given):
        request = urllib.request.Request(f"{self._etcd_url}/{call}", json.dumps(given).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def token(self, namespace, account):
        """A token of a service account, as the kubelet mounts one into its pods."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        given = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return self.call("POST", path, given)["status"]["token"]

    def kubeconfig(self, name, token):
        """The path of a kubeconfig file with this token, or that names the file of one."""
        user = {"tokenFile": str(token)} if isinstance(token, Path) else {"token": token}
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        text = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u"}}],
        }
        path = self._folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(text))
        return str(path)

    def ready(self):
        """Whether the API server answers, and has made the namespace that everything else needs."""
        assert not self.api_server.ended(), self.api_server.log.read_text()[-3000:]
        try:
            self.call("GET", "/readyz")
            self.call("GET", "/api/v1/namespaces/default")
        except OSError:
            return False
        return True


@contextmanager
def control_plane(folder, *others):
    """A control plane with RBAC and two users, an administrator and a tenant without any rights.

    `others` are the components to run beside the API server.
    """
    processes.certificates(folder)
    with ExitStack() as stack:
        client, peer, port, nobody = (stack.enter_context(processes.reserved_port()) for _ in range(4))
        stack.enter_context(processes.running("etcd", processes.etcd_arguments(folder, client, peer), folder))
        plane = ControlPlane(port, client, folder)
        arguments = processes.apiserver_arguments(folder, client, port)
        plane.api_server = stack.enter_context(processes.running("kube-apiserver", arguments, folder))
        until(plane.ready)
        kubeconfig = plane.kubeconfig("admin", processes.ADMIN)
        started = {
            "kube-scheduler": lambda: processes.scheduler_arguments(folder, kubeconfig, nobody),
            "kube-controller-manager": lambda: processes.manager_arguments(kubeconfig),
        }
        for name in others:
            stack.enter_context(processes.running(name, started[name](), folder))
        yield plane
