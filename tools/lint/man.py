"""The manual pages of spark-staged and of the configuration must list exactly the existing options and keys."""
import re

_KEY = re.compile(r"^(?:\s+# |\s*)([a-z_]+):", re.MULTILINE)
_NAMES = {"rose", "datasets", "scratch", "nas", "imagenet", "corpus", "llama"}  # of the examples; `datasets` is also a section
_DEFINED = re.compile(r'(?:add_option|add_flag|set_help_flag|set_version_flag)\(\s*"([^"]+)"')
_VARIABLE = re.compile(r'envname\("(\w+)"\)')
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def plain(roff):
    return roff.replace("\\-", "-").replace("\\e", "\\")


def _tags(roff):
    """The options with their own paragraph."""
    return {option for tag in re.findall(r"^\.TP\n(.*)$", plain(roff), re.MULTILINE)
            for option in re.findall(r"--[a-z0-9-]+", tag)}


def _differences(page, what, there, in_page):
    return ([f"{page} does not have {option} of '{what}'" for option in sorted(there - in_page)]
            + [f"{page} has {option} of '{what}', which is none" for option in sorted(in_page - there)])


def _section(roff, title):
    found = re.search(rf'^\.SH "?{title}"?\n(.*?)(?=^\.SH |\Z)', roff, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def check_daemon(source, roff):
    """source: the file in which spark-staged defines its options. Its help, like every screen, fits 80 columns."""
    defined = {name for names in _DEFINED.findall(source) for name in names.split(",") if name.startswith("--")}
    variables = set(_VARIABLE.findall(source))
    in_page = set(re.findall(r"^\.TP\n\.B (\w+)$", _section(roff, "ENVIRONMENT"), re.MULTILINE))
    lines = [line for text in _LITERAL.findall(source) for line in text.split("\\n")]
    return (_differences("spark-staged.8", "spark-staged", defined, _tags(_section(roff, "OPTIONS")))
            + _differences("spark-staged.8", "the environment", variables, in_page)
            + [f"spark-staged prints a line of more than 80 columns: {line}" for line in lines if len(line) > 80])


def check_keys(reference, roff):
    """reference: the commented configuration with every key."""
    words = set(re.findall(r"^\.B (\S+)$", plain(roff), re.MULTILINE))
    return [f"spark-stage.yaml.5 does not have '{key}'" for key in sorted(set(_KEY.findall(reference)) - _NAMES)
            if key not in words]
