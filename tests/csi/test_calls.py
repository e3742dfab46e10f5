"""The codes of each call for missing, wrong and repeated arguments, as checked by the specification's own sanity tests."""
import subprocess

import grpc
import pytest

import wire
from driver import wait_until

Code = grpc.StatusCode
CAPABILITY = wire.csi.VolumeCapability(mount=wire.csi.VolumeCapability.MountVolume())
BLOCK = wire.csi.VolumeCapability(block=wire.csi.VolumeCapability.BlockVolume())


def code_of(kubelet, path, request):
    try:
        kubelet.call(path, request)
    except grpc.RpcError as error:
        assert error.details(), "an error has a sentence"
        return error.code()
    return Code.OK


def publish(kubelet, **changed):
    whole = {"volume_id": "v1", "target_path": str(kubelet.folder / "target"), "volume_capability": CAPABILITY,
             "volume_context": {"dataset": "imagenet"}}
    request = wire.csi.NodePublishVolumeRequest(**{key: value for key, value in (whole | changed).items() if value is not None})
    return code_of(kubelet, "/csi.v1.Node/NodePublishVolume", request)


def unpublish(kubelet, volume="v1", target="target"):
    path = str(kubelet.folder / target) if target else ""
    return code_of(kubelet, "/csi.v1.Node/NodeUnpublishVolume",
                   wire.csi.NodeUnpublishVolumeRequest(volume_id=volume, target_path=path))


def stats(kubelet, volume="v1", path="target"):
    return code_of(kubelet, "/csi.v1.Node/NodeGetVolumeStats",
                   wire.csi.NodeGetVolumeStatsRequest(volume_id=volume, volume_path=str(kubelet.folder / path) if path else ""))


def test_the_plugin_reports_its_name_and_capabilities(driver, kubelet):
    info = kubelet.call("/csi.v1.Identity/GetPluginInfo", wire.csi.GetPluginInfoRequest())
    assert info.name == "stage.spark-stage.io" and info.vendor_version
    assert kubelet.call("/csi.v1.Identity/GetPluginCapabilities", wire.csi.GetPluginCapabilitiesRequest()).ByteSize() == 0
    can = kubelet.call("/csi.v1.Node/NodeGetCapabilities", wire.csi.NodeGetCapabilitiesRequest()).capabilities
    assert [one.rpc.type for one in can] == [wire.csi.NodeServiceCapability.RPC.GET_VOLUME_STATS]


def test_a_probe_reports_whether_the_daemon_answers(driver, daemon, kubelet):
    def ready():
        return kubelet.call("/csi.v1.Identity/Probe", wire.csi.ProbeRequest()).ready.value
    assert ready()
    daemon.kill()
    assert not ready()
    daemon.start()
    assert ready()


# One driver for all tests, since none of them leaves anything behind.
WRONG = [
    {"volume_id": ""}, {"target_path": ""}, {"volume_capability": None}, {"volume_capability": wire.csi.VolumeCapability()},
    {"volume_capability": BLOCK}, {"target_path": "relative"}, {"target_path": "/"}, {"volume_id": "a/b"}, {"volume_id": "v" * 129},
    {"volume_context": {}}, {"volume_context": {"dataset": ""}}, {"volume_context": {"dataset": "imagenet", "datset": "x"}},
    {"volume_context": {"dataset": "imagenet", "csi.storage.k8s.io/ephemeral": "false"}},
    {"volume_capability": wire.csi.VolumeCapability(mount=wire.csi.VolumeCapability.MountVolume(mount_flags=["exec"]))}]


def test_a_publish_with_missing_or_wrong_arguments_is_invalid(driver, kubelet):
    codes = [publish(kubelet, **changed) for changed in WRONG]
    assert codes == [Code.INVALID_ARGUMENT] * len(WRONG), list(zip(WRONG, codes))


def test_a_publish_call_may_be_repeated_but_not_changed(driver, daemon, kubelet):
    assert publish(kubelet) == Code.OK
    assert publish(kubelet) == Code.OK
    assert publish(kubelet, volume_context={"dataset": "models"}) == Code.ALREADY_EXISTS
    assert stats(kubelet) == Code.OK
    assert unpublish(kubelet) == Code.OK
    assert unpublish(kubelet) == Code.OK
    wait_until(lambda: not daemon.leases(), "the lease has ended")
    assert not (kubelet.folder / "target").exists()


def test_a_repeated_publish_call_claims_a_lost_lease(driver, daemon, kubelet):
    assert publish(kubelet) == Code.OK
    daemon.ask("DELETE", "/v1/leases/job:csi:v1")
    assert not daemon.leases()
    assert publish(kubelet) == Code.OK
    assert daemon.leases() == {("v1", "imagenet")}
    assert unpublish(kubelet) == Code.OK


def test_unpublish_needs_its_arguments_and_accepts_an_unknown_volume(driver, kubelet):
    assert unpublish(kubelet, volume="") == Code.INVALID_ARGUMENT
    assert unpublish(kubelet, target="") == Code.INVALID_ARGUMENT
    assert unpublish(kubelet, volume="unknown", target="nothing/there") == Code.OK


def test_volume_statistics_need_a_mounted_volume(driver, kubelet):
    assert stats(kubelet, volume="") == Code.INVALID_ARGUMENT
    assert stats(kubelet, path="") == Code.INVALID_ARGUMENT
    assert stats(kubelet, path="not-mounted") == Code.NOT_FOUND
    relative = wire.csi.NodeGetVolumeStatsRequest(volume_id="v1", volume_path="some/path")
    assert code_of(kubelet, "/csi.v1.Node/NodeGetVolumeStats", relative) == Code.NOT_FOUND


def test_a_call_that_a_node_only_driver_lacks_is_unimplemented(driver, kubelet):
    for path in ("/csi.v1.Node/NodeStageVolume", "/csi.v1.Node/NodeExpandVolume", "/csi.v1.Controller/CreateVolume"):
        with pytest.raises(grpc.RpcError) as error:  # gRPC's own code, without our message
            kubelet.call(path, wire.csi.ProbeRequest())
        assert error.value.code() == Code.UNIMPLEMENTED, path


def test_a_target_path_used_by_another_program_is_refused(driver, kubelet, folder):
    target = kubelet.folder / "target"
    target.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", target], check=True)
    try:
        assert publish(kubelet) == Code.FAILED_PRECONDITION
    finally:
        subprocess.run(["umount", target], check=True)
