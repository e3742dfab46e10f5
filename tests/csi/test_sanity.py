"""csi-sanity, the specification's own test program, against the driver. SPARK_CSI_SANITY names the program, built from
github.com/kubernetes-csi/csi-test; test_calls.py checks the same codes without it."""
import os
import subprocess
import xml.etree.ElementTree as xml
from concurrent import futures

import grpc
import pytest

SANITY = os.environ.get("SPARK_CSI_SANITY", "")
pytestmark = pytest.mark.skipif(not SANITY, reason="SPARK_CSI_SANITY names no csi-sanity program")


def field(number, payload):
    """A field of a protobuf message: bytes, of less than 128."""
    assert len(payload) < 128
    return bytes([number << 3 | 2, len(payload)]) + payload


CREATE_DELETE_VOLUME = bytes([1 << 3, 1])  # field 1, the enumeration's value 1


def create_volume(request):
    """A CreateVolumeResponse: the volume's ID is the name in the request, and its context names a dataset."""
    assert request[0] == 1 << 3 | 2
    name = request[2:2 + request[1]]
    return field(1, field(2, name) + field(3, field(1, b"dataset") + field(2, b"imagenet")))


class Controller(grpc.GenericRpcHandler):
    """csi-sanity asks a controller service before each of its tests for nodes. The driver has none, since its volumes are inline."""

    def service(self, details):
        answers = {"/csi.v1.Controller/CreateVolume": create_volume, "/csi.v1.Controller/DeleteVolume": lambda _: b"",
                   "/csi.v1.Controller/ControllerGetCapabilities": lambda _: field(1, field(1, CREATE_DELETE_VOLUME))}
        answer = answers.get(details.method)
        return grpc.unary_unary_rpc_method_handler(lambda request, _: answer(request)) if answer else None


@pytest.fixture
def controller(folder):
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[Controller()])
    server.add_insecure_port(f"unix:{folder}/controller.sock")
    server.start()
    yield f"unix://{folder}/controller.sock"
    server.stop(None).wait()


def sanity(kubelet, folder, service, *arguments):
    """Its tests of one service: their names and results."""
    report = folder / "sanity.xml"
    run = subprocess.run([SANITY, f"--csi.endpoint=unix://{kubelet.endpoint}", f"--csi.mountdir={kubelet.folder}/target",
                          f"--csi.stagingdir={folder}/staging", f"--ginkgo.focus={service}", "--ginkgo.no-color",
                          f"--ginkgo.junit-report={report}", *arguments],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    results = {case.get("name"): case.get("status") for case in xml.parse(report).iter("testcase") if service in case.get("name")}
    print(*(f"{status}: {name}" for name, status in results.items()), sep="\n")
    failed = {name for name, status in results.items() if status not in ("passed", "skipped")}
    assert not failed and run.returncode == 0, run.stdout
    return [name for name, status in results.items() if status == "passed"]


def test_csi_sanity_finds_no_fault_in_the_identity_service(driver, kubelet, folder):
    assert len(sanity(kubelet, folder, "Identity Service")) == 3


def test_csi_sanity_finds_no_fault_in_the_node_service(driver, kubelet, folder, controller):
    assert len(sanity(kubelet, folder, "Node Service", f"--csi.controllerendpoint={controller}")) >= 11
