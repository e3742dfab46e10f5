"""The manual pages have every verb, option and key that there is and no other, and are well-formed."""
import re

_VERB = re.compile(r"^\$ spark-stage (.+) --help$", re.MULTILINE)
_OPTION = re.compile(r"^  (?:-\w,)?(--[a-z0-9-]+)", re.MULTILINE)
_KEY = re.compile(r"^(?:\s+# |\s*)([a-z_]+):", re.MULTILINE)
_NAMES = {"rose", "datasets", "scratch", "nas", "imagenet", "models"}  # of the examples; `datasets` is a section too
_EVERYWHERE = {"--help", "--config", "--socket"}  # of every verb; the page has them once
_DEFINED = re.compile(r'(?:add_option|add_flag|set_help_flag|set_version_flag)\(\s*"([^"]+)"')
_VARIABLE = re.compile(r'envname\("(\w+)"\)')
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def plain(roff):
    return roff.replace("\\-", "-").replace("\\e", "\\")


def _tags(roff):
    """The options that have a paragraph of their own."""
    return {option for tag in re.findall(r"^\.TP\n(.*)$", plain(roff), re.MULTILINE)
            for option in re.findall(r"--[a-z0-9-]+", tag)}


def _differences(page, what, there, in_page):
    return ([f"{page} does not have {option} of '{what}'" for option in sorted(there - in_page)]
            + [f"{page} has {option} of '{what}', which is none" for option in sorted(in_page - there)])


def _section(roff, title):
    found = re.search(rf'^\.SH "?{title}"?\n(.*?)(?=^\.SH |\Z)', roff, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def _verbs_in_page(roff):
    verbs = {}
    for section in re.split(r'^\.SS "', plain(_section(roff, "VERBS")), flags=re.MULTILINE)[1:]:
        title, _, text = section.partition("\n")
        words = re.match(r"spark-stage((?: [a-z][a-z-]*)+)", title)
        verbs[words[1].strip() if words else title] = _tags(text)
    return verbs


def check_command(program_help, verb_help, roff):
    """program_help, verb_help: the golden files of the help, and of every verb's."""
    parts = _VERB.split(verb_help)[1:]
    there = {verb: set(_OPTION.findall(text)) - _EVERYWHERE for verb, text in zip(parts[::2], parts[1::2])}
    groups = {verb for verb, text in zip(parts[::2], parts[1::2]) if re.search(r"^Usage: .* VERB$", text, re.MULTILINE)}
    in_page = _verbs_in_page(roff)
    problems = [f"spark-stage.1 has no section for '{verb}'" for verb in there if verb not in groups | set(in_page)]
    problems += [f"spark-stage.1 has a section for '{verb}', which is none" for verb in in_page if verb not in there]
    for verb in there.keys() & in_page.keys():
        problems += _differences("spark-stage.1", verb, there[verb], in_page[verb])
    options = set(_OPTION.findall(program_help))
    return problems + _differences("spark-stage.1", "spark-stage", options, _tags(_section(roff, "OPTIONS")))


def check_daemon(source, roff):
    """source: where spark-staged defines its options. Its help, like every screen, fits 80 columns."""
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
