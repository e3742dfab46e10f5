"""configs/kubernetes against the schemas that Kubernetes and Talos publish. SPARK_SCHEMAS names a folder with swagger.json
(github.com/kubernetes/kubernetes, api/openapi-spec) and config.schema.json (github.com/siderolabs/talos,
pkg/machinery/config/schemas). They are not ours to distribute; test_manifests.py checks the fields' names without them."""
import json
import os
from pathlib import Path

import jsonschema
import pytest
import yaml

from staged import ROOT

FOLDER = ROOT / "configs/kubernetes"
SCHEMAS = os.environ.get("SPARK_SCHEMAS", "")
OBJECTS = ["namespace", "csidriver", "daemonset", "job"]
pytestmark = pytest.mark.skipif(not SCHEMAS, reason="SPARK_SCHEMAS names no folder with the published schemas")


def load(name):
    return yaml.safe_load((FOLDER / name).read_text())


def validator(schema):
    return jsonschema.validators.validator_for(schema, jsonschema.Draft7Validator)(schema)


def of_kubernetes(thing):
    """Stricter than published: an unknown field is an error, as for `kubectl apply --validate=strict`."""
    schemas = json.loads(Path(SCHEMAS, "swagger.json").read_text())["definitions"]
    group, _, version = thing["apiVersion"].rpartition("/")
    wanted = {"group": group, "version": version, "kind": thing["kind"]}
    name = next(name for name, schema in schemas.items() if schema.get("x-kubernetes-group-version-kind") == [wanted])
    for schema in schemas.values():
        if "properties" in schema:
            schema.setdefault("additionalProperties", False)
        if schema.get("format") == "int-or-string":
            schema["type"] = ["integer", "string"]
    return validator({"$ref": f"#/definitions/{name}", "definitions": schemas})


def errors(checker, thing):
    return [f"{error.json_path}: {error.message}" for error in checker.iter_errors(thing)]


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_valid(name):
    thing = load(f"{name}.yaml")
    assert not errors(of_kubernetes(thing), thing)


def test_the_patch_of_a_talos_machine_is_valid():
    schema = json.loads(Path(SCHEMAS, "config.schema.json").read_text())
    assert not errors(validator(schema), load("talos/machine.yaml"))


def test_a_misspelt_field_and_a_wrong_type_are_found():
    thing = load("daemonset.yaml")
    pod = thing["spec"]["template"]["spec"]
    pod["hostnetwork"], pod["hostPID"] = pod.pop("hostNetwork"), "yes"
    found = errors(of_kubernetes(thing), thing)
    assert len(found) == 2 and "'hostnetwork' was unexpected" in str(found) and "'yes' is not of type 'boolean'" in str(found), found
    patch = load("talos/machine.yaml")
    patch["machine"]["kernel"]["module"] = patch["machine"]["kernel"].pop("modules")
    assert errors(validator(json.loads(Path(SCHEMAS, "config.schema.json").read_text())), patch)
