"""The parts of kubelet that a driver sees: registration, deadlines, repeated calls with growing pauses, its records of volumes."""
import hashlib
import json
import shutil
import threading
import time
from pathlib import Path

import grpc

import wire

DRIVER = "stage.spark-stage.io"
# Constants of kubelet's source: the deadline of a call, the first pause and the longest pause.
DEADLINE_S, FIRST_PAUSE_S, LONGEST_PAUSE_S = 120, 0.5, 122


class Pod:
    """One volume of a pod: kubelet keeps trying until it is mounted, and after remove() until it is unmounted."""

    def __init__(self, kubelet, uid, namespace, name, attributes):
        self.kubelet, self.uid, self.name, self.namespace = kubelet, uid, name, namespace
        self.attributes = attributes
        self.volume = "csi-" + hashlib.sha256(f"{uid}data".encode()).hexdigest()
        self.folder = kubelet.folder / "pods" / uid / "volumes/kubernetes.io~csi/data"
        self.target = self.folder / "mount"
        self.events = []  # (code, sentence) of each call that failed
        self.is_wanted, self.mounted, self.gone = True, threading.Event(), threading.Event()
        self.worker = threading.Thread(target=self.work, daemon=True)
        self.worker.start()

    def work(self):
        self.record()
        self.repeat(self.publish, lambda: self.is_wanted, self.mounted)
        while self.is_wanted:
            time.sleep(0.02)
        self.repeat(self.unpublish, lambda: True, None)
        shutil.rmtree(self.kubelet.folder / "pods" / self.uid)
        self.gone.set()

    def repeat(self, call, go_on, done):
        """Repeats the call until it succeeds, with a growing pause after each error."""
        pause = FIRST_PAUSE_S
        while go_on():
            try:
                call()
            except grpc.RpcError as error:
                self.events.append((error.code(), error.details()))
                self.kubelet.sleep(pause, go_on)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            if done:
                done.set()
            return

    def record(self):
        self.folder.mkdir(parents=True)
        (self.folder / "vol_data.json").write_text(json.dumps({
            "attachmentID": "csi-0", "driverName": DRIVER, "nodeName": "n1", "specVolID": "data", "volumeHandle": self.volume,
            "volumeLifecycleMode": "Ephemeral"}))

    def request(self):
        return wire.csi.NodePublishVolumeRequest(
            volume_id=self.volume, target_path=str(self.target), readonly=True,
            volume_capability=wire.csi.VolumeCapability(mount=wire.csi.VolumeCapability.MountVolume()),
            volume_context={**self.attributes, "csi.storage.k8s.io/ephemeral": "true", "csi.storage.k8s.io/pod.name": self.name,
                            "csi.storage.k8s.io/pod.namespace": self.namespace, "csi.storage.k8s.io/pod.uid": self.uid,
                            "csi.storage.k8s.io/serviceAccount.name": "default"})

    def publish(self):
        self.kubelet.call("/csi.v1.Node/NodePublishVolume", self.request())

    def unpublish(self):
        self.kubelet.call("/csi.v1.Node/NodeUnpublishVolume",
                          wire.csi.NodeUnpublishVolumeRequest(volume_id=self.volume, target_path=str(self.target)))

    def remove(self):
        self.is_wanted = False

    def forget(self):
        """Like `kubectl delete --force` for a node that was unreachable: the volume is never unpublished."""
        shutil.rmtree(self.kubelet.folder / "pods" / self.uid)


class Kubelet:
    """`deadline_s` is 120 in kubelet's source. Scenarios use less, since each call takes that long: the driver answers in
    proportion to the deadline of the call, and the pauses between calls are shortened by the same factor."""

    def __init__(self, folder, deadline_s=DEADLINE_S):
        self.folder, self.deadline_s = Path(folder), deadline_s
        (self.folder / "plugins_registry").mkdir(parents=True)
        (self.folder / "pods").mkdir()
        self.endpoint, self.node = None, None
        self.pods = []
        self.start_pod("kube-proxy", attributes=None)

    def sleep(self, seconds, go_on):
        end = time.monotonic() + seconds * self.deadline_s / DEADLINE_S
        while go_on() and time.monotonic() < end:
            time.sleep(0.02)

    def register(self, patience_s=60):
        """Queries the only socket in plugins_registry, then the driver itself."""
        end = time.monotonic() + patience_s
        while True:
            try:
                socket = next((self.folder / "plugins_registry").glob("*.sock"))
                info = wire.call(socket, "/pluginregistration.Registration/GetInfo", wire.registration.InfoRequest(), 5)
                break
            except (StopIteration, grpc.RpcError):
                assert time.monotonic() < end, "no driver made itself known"
                time.sleep(0.05)
        self.endpoint = info.endpoint
        self.node = self.call("/csi.v1.Node/NodeGetInfo", wire.csi.NodeGetInfoRequest()).node_id
        self.notify(socket, True)
        return info

    @staticmethod
    def notify(socket, accepted, why=""):
        wire.call(socket, "/pluginregistration.Registration/NotifyRegistrationStatus",
                  wire.registration.RegistrationStatus(plugin_registered=accepted, error=why), 5)

    def call(self, path, request):
        return wire.call(self.endpoint, path, request, self.deadline_s)

    def start_pod(self, uid, dataset="imagenet", namespace="team-b", attributes=()):
        if attributes is None:  # a pod without one of our volumes
            (self.folder / "pods" / uid / "volumes").mkdir(parents=True)
            return None
        pod = Pod(self, uid, namespace, f"pod-{uid}", dict(attributes) or {"dataset": dataset})
        self.pods.append(pod)
        return pod
