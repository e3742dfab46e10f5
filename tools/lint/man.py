"""The manual pages have every verb, option and key that there is, and are well-formed."""
import re

_VERB = re.compile(r"^\$ spark-stage (.+) --help$", re.MULTILINE)
_OPTION = re.compile(r"^  (?:-\w,)?(--[a-z0-9-]+)", re.MULTILINE)
_KEY = re.compile(r"^(?:\s+# |\s*)([a-z_]+):", re.MULTILINE)
_NAMES = {"rose", "datasets", "scratch", "nas", "imagenet", "models"}  # of the examples; `datasets` is a section too


def plain(roff):
    return roff.replace("\\-", "-").replace("\\e", "\\")


def _words(roff):
    return set(re.findall(r"[-\w]+", plain(roff)))


def check_command(help_text, roff):
    """help_text: the golden file of every verb's help."""
    page, words = plain(roff), _words(roff)
    groups = {verb.split()[0] for verb in _VERB.findall(help_text) if " " in verb}
    problems = [f"spark-stage.1 has no section for '{verb}'" for verb in _VERB.findall(help_text)
                if verb not in groups and f'"spark-stage {verb}' not in page]
    return problems + [f"spark-stage.1 does not have {option}" for option in sorted(set(_OPTION.findall(help_text)))
                       if option not in words]


def check_keys(reference, roff):
    """reference: the commented configuration with every key."""
    words = set(re.findall(r"^\.B (\S+)$", plain(roff), re.MULTILINE))
    return [f"spark-stage.yaml.5 does not have '{key}'" for key in sorted(set(_KEY.findall(reference)) - _NAMES)
            if key not in words]
