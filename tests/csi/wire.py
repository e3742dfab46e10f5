"""The driver's calls from Python, generated from its own .proto files by Debian's protoc."""
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc

ROOT = Path(__file__).resolve().parents[2]


def load():
    if importlib.util.find_spec("csi_pb2") is None:  # a virtual machine has the modules beside this file, and no protoc
        folder = tempfile.mkdtemp(prefix="csi-wire-")
        protos = ROOT / "csi/server"
        subprocess.run(["protoc", f"--proto_path={protos}", f"--python_out={folder}", "csi.proto", "registration.proto"], check=True)
        sys.path.insert(0, folder)
    return importlib.import_module("csi_pb2"), importlib.import_module("registration_pb2")


csi, registration = load()
ANSWERS = {
    "/csi.v1.Identity/GetPluginInfo": csi.GetPluginInfoResponse,
    "/csi.v1.Identity/GetPluginCapabilities": csi.GetPluginCapabilitiesResponse,
    "/csi.v1.Identity/Probe": csi.ProbeResponse,
    "/csi.v1.Node/NodeGetInfo": csi.NodeGetInfoResponse,
    "/csi.v1.Node/NodeGetCapabilities": csi.NodeGetCapabilitiesResponse,
    "/csi.v1.Node/NodeGetVolumeStats": csi.NodeGetVolumeStatsResponse,
    "/csi.v1.Node/NodePublishVolume": csi.NodePublishVolumeResponse,
    "/csi.v1.Node/NodeUnpublishVolume": csi.NodeUnpublishVolumeResponse,
    "/pluginregistration.Registration/GetInfo": registration.PluginInfo,
    "/pluginregistration.Registration/NotifyRegistrationStatus": registration.RegistrationStatusResponse,
}


def call(socket, path, request, timeout_s):
    """Raises grpc.RpcError. Opens a connection for each call, like kubelet."""
    answer = ANSWERS.get(path, csi.NodePublishVolumeResponse)
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        method = channel.unary_unary(path, request_serializer=type(request).SerializeToString,
                                     response_deserializer=answer.FromString)
        return method(request, timeout=timeout_s, wait_for_ready=False)
