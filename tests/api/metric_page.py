"""Prometheus's text format, and the metrics used by a PromQL expression."""
import re

_SAMPLE = re.compile(r'^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$')
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SELECTOR = re.compile(r'\b((?:spark_stage|process)_\w+)(?:\{([^}]*)\})?')
# Added by Prometheus itself, so not on the page.
FROM_SCRAPE = {"job", "instance"}


class Page:
    """types: {family: type}, samples: [(name, {label: value}, number)]"""

    def __init__(self, text):
        self.types, self.samples = {}, []
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split()
                self.types[name] = kind
            elif line and not line.startswith("#"):
                found = _SAMPLE.match(line)
                assert found, line
                self.samples.append((found["name"], dict(_LABEL.findall(found["labels"] or "")), float(found["value"])))

    def value(self, name, **labels):
        found = [value for sample, has, value in self.samples if sample == name and has == labels]
        assert len(found) == 1, f"{name} {labels}: {found}"
        return found[0]

    def names(self):
        """Names of series: a summary has three."""
        derived = {f"{name}{end}" for name, kind in self.types.items() if kind == "summary" for end in ("_sum", "_count")}
        return set(self.types) | derived

    def labels_of(self, name):
        return {label for sample, has, _ in self.samples if sample == name for label in has}


def problems_of(expression, page):
    """Metrics and labels that the expression uses and the page does not have."""
    problems = []
    asked = _SELECTOR.findall(expression)
    if not asked:
        problems.append(f"asks for nothing: {expression}")
    for name, selector in asked:
        labels = set(re.findall(r'(\w+)\s*(?:=~|!~|!=|=)', selector)) - FROM_SCRAPE
        if name not in page.names():
            problems.append(f"there is no metric {name}")
        elif page.labels_of(name) and not labels <= page.labels_of(name):
            problems.append(f"{name} has no label {', '.join(sorted(labels - page.labels_of(name)))}")
    return problems
