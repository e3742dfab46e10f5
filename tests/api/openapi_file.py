"""docs/openapi.yaml: its operations, and a check of answers against it."""
import copy
import json

import jsonschema
import yaml

from staged import ROOT

FILE = ROOT / "docs/openapi.yaml"
METHODS = ("get", "post", "put", "delete", "patch", "head")


def _strict(node):
    """A client ignores unknown fields; a test of the documentation must not."""
    if isinstance(node, dict):
        for value in node.values():
            _strict(value)
        if node.get("type") == "object" and isinstance(node.get("properties"), dict):
            node.setdefault("additionalProperties", False)
    elif isinstance(node, list):
        for value in node:
            _strict(value)


class OpenApi:
    def __init__(self):
        self.document = yaml.safe_load(FILE.read_text())
        self._schemas = copy.deepcopy(self.document)
        _strict(self._schemas["components"]["schemas"])
        _strict(self._schemas["paths"])
        self._resolver = jsonschema.RefResolver.from_schema(self._schemas)

    def operations(self):
        """{(METHOD, path): operation}"""
        return {(method.upper(), path): operation for path, item in self._schemas["paths"].items()
                for method, operation in item.items() if method in METHODS}

    def resolved(self, node):
        return self._resolver.resolve(node["$ref"])[1] if "$ref" in node else node

    def problems(self, schema, value):
        validator = jsonschema.Draft202012Validator(schema, resolver=self._resolver)
        return [f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}" for error in
                validator.iter_errors(value)]

    def problems_of_answer(self, method, path, status, kind, content):
        """`path` as written in the document."""
        responses = self.operations()[method, path]["responses"]
        response = self.resolved(responses.get(str(status), responses["default"]))
        media = kind.split(";")[0]
        if media not in response["content"]:
            return [f"{media} is not what {status} is documented to be"]
        schema = response["content"][media]["schema"]
        if media == "text/plain":
            return self.problems(schema, content.decode())
        values = [json.loads(line) for line in content.decode().splitlines()]
        if str(status) not in responses and not 400 <= status < 600:
            return [f"{status} is not documented, and no error"]
        return [problem for value in values for problem in self.problems(schema, value)]

    def problems_of_body(self, method, path, body):
        content = self.operations()[method, path].get("requestBody", {}).get("content", {})
        return self.problems(content["application/json"]["schema"], body) if content else ["takes no body"] * bool(body)
