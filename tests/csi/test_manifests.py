"""configs/kubernetes: the objects match each other, the programs and the driver, and use only fields known to Kubernetes."""
import subprocess

import pytest
import yaml

from staged import BUILD, ROOT

FOLDER = ROOT / "configs/kubernetes"
PROGRAMS = {"spark-staged": "daemon/spark-staged", "spark-stage": "cli/spark-stage", "spark-stage-csi": "csi/server/spark-stage-csi"}

# The fields of the published API (v1.25 and later) used by the objects, by path; [] is each entry of a list. A misspelt or
# misplaced field is not in this table. None: any value.
META = {"name": None, "namespace": None, "labels": None}
CONTAINER = {"name": None, "image": None, "command": None, "env": [{"name": None, "valueFrom": {"fieldRef": {"fieldPath": None}}}],
             "securityContext": {"privileged": None}, "volumeMounts": [{"name": None, "mountPath": None, "readOnly": None,
                                                                         "mountPropagation": None}],
             "livenessProbe": {"exec": {"command": None}, "initialDelaySeconds": None, "periodSeconds": None, "timeoutSeconds": None}}
POD = {"hostNetwork": None, "hostPID": None, "dnsPolicy": None, "automountServiceAccountToken": None, "priorityClassName": None,
       "terminationGracePeriodSeconds": None, "nodeSelector": None, "restartPolicy": None,
       "tolerations": [{"operator": None}], "containers": [CONTAINER],
       "volumes": [{"name": None, "configMap": {"name": None}, "hostPath": {"path": None, "type": None}, "emptyDir": {"medium": None},
                    "csi": {"driver": None, "readOnly": None, "volumeAttributes": None}}]}
TEMPLATE = {"metadata": META, "spec": POD}
KINDS = {
    ("v1", "Namespace"): {"metadata": META},
    ("storage.k8s.io/v1", "CSIDriver"): {"metadata": META, "spec": {
        "attachRequired": None, "podInfoOnMount": None, "fsGroupPolicy": None, "volumeLifecycleModes": None}},
    ("apps/v1", "DaemonSet"): {"metadata": META, "spec": {
        "selector": {"matchLabels": None}, "updateStrategy": {"type": None, "rollingUpdate": {"maxUnavailable": None}},
        "template": TEMPLATE}},
    ("batch/v1", "Job"): {"metadata": META, "spec": {"backoffLimit": None, "template": TEMPLATE}},
    ("kustomize.config.k8s.io/v1beta1", "Kustomization"): {
        "namespace": None, "resources": None, "configMapGenerator": [{"name": None, "files": None}],
        "images": [{"name": None, "newName": None, "newTag": None}]},
}
TALOS = {"machine": {"kernel": {"modules": [{"name": None}]}, "nodeLabels": None, "kubelet": {"extraMounts": [
    {"destination": None, "type": None, "source": None, "options": None}]}}}


def load(name):
    return yaml.safe_load((FOLDER / name).read_text())


def unknown(value, known, place=""):
    if known is None:
        return []
    if isinstance(known, list):
        assert isinstance(value, list), place
        return [found for one in value for found in unknown(one, known[0], place + "[]")]
    assert isinstance(value, dict), place
    return [found for key, one in value.items()
            for found in (unknown(one, known[key], f"{place}.{key}") if key in known else [f"{place}.{key}"])]


@pytest.fixture(name="pod")
def daemonset_pod():
    return load("daemonset.yaml")["spec"]["template"]["spec"]


@pytest.mark.parametrize("name", ["kustomization", "namespace", "csidriver", "daemonset", "job"])
def test_an_object_has_only_known_fields_of_its_kind(name):
    thing = load(f"{name}.yaml")
    kind = KINDS[thing.pop("apiVersion"), thing.pop("kind")]
    assert not unknown(thing, kind)


def test_the_patch_of_a_talos_machine_has_only_known_fields():
    assert not unknown(load("talos/machine.yaml"), TALOS)


def test_the_kustomization_names_existing_files_and_images(pod):
    kustomization = load("kustomization.yaml")
    for file in kustomization["resources"] + kustomization["configMapGenerator"][0]["files"]:
        assert (FOLDER / file).is_file(), file
    assert {one["name"] for one in kustomization["images"]} == {one["image"] for one in pod["containers"]}
    configs = [volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume]
    assert configs == [kustomization["configMapGenerator"][0]["name"]]


def test_the_daemonset_selects_its_own_pods_and_the_nodes_that_the_patch_labels():
    spec = load("daemonset.yaml")["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    assert spec["template"]["spec"]["nodeSelector"].items() <= load("talos/machine.yaml")["machine"]["nodeLabels"].items()


def test_each_container_starts_a_program_with_options_that_it_has(pod):
    commands = [container["command"] for container in pod["containers"]]
    commands += [container["livenessProbe"]["exec"]["command"] for container in pod["containers"] if "livenessProbe" in container]
    for program, *arguments in commands:
        done = subprocess.run([BUILD / PROGRAMS[program], *arguments, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (program, arguments, done.stderr)


def test_mounts_of_the_containers_have_the_nodes_paths_and_are_propagated(pod):
    daemon, driver = pod["containers"]
    places = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    for container in (daemon, driver):
        for mount in container["volumeMounts"]:
            if mount["name"] in places and mount["name"] != "identity":
                assert mount["mountPath"] == places[mount["name"]], "paths in sentences and mounts are the node's"
    propagated = {mount["name"] for container in (daemon, driver) for mount in container["volumeMounts"]
                  if mount.get("mountPropagation") == "Bidirectional"}
    assert propagated == {"state", "volumes", "kubelet"}
    config = load("spark-stage.yaml")
    for volume in config["volumes"].values():
        assert volume["mount"].startswith(places["volumes"] + "/")
    assert config["cache"]["path"].startswith(places["state"] + "/")
    assert pod["hostNetwork"] and pod["hostPID"]


def test_the_configuration_of_the_nodes_is_valid():
    done = subprocess.run([BUILD / "cli/spark-stage", "config", "check", FOLDER / "spark-stage.yaml"], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_driver_receives_the_pods_namespace_and_changes_no_owners():
    driver = load("csidriver.yaml")
    assert driver["metadata"]["name"] == "stage.spark-stage.io"
    assert driver["spec"] == {"attachRequired": False, "podInfoOnMount": True, "fsGroupPolicy": "None",
                              "volumeLifecycleModes": ["Ephemeral"]}
    job = load("job.yaml")["spec"]["template"]["spec"]
    assert job["volumes"][0]["csi"]["driver"] == driver["metadata"]["name"]
    assert job["containers"][0]["volumeMounts"][0]["name"] == job["volumes"][0]["name"]
