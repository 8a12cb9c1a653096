"""Whatever stands on the command line and in the environment: it is understood, or is one message."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from exporter.cli import parse
from exporter.config import Arguments, ConfigError
from exporter.flags.table import COMMANDS
from exporter.node.config import NodeConfig, node_config

NODE = COMMANDS["node"]
ROWS = (*NODE.flags(), *NODE.ignored)
VARIABLES = [flag.variable for flag in ROWS if flag.variable]
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12)
spellings = st.sampled_from([name for flag in ROWS for name in flag.names()])
values = st.one_of(
    texts, st.integers(-5, 10**7).map(str), st.sampled_from(["true", "false", "T", "0", ":9400", "f", "g:0-3", "none"])
)
words = st.one_of(texts, spellings, st.builds("{}={}".format, spellings, values), values)
environments = st.dictionaries(st.sampled_from(VARIABLES), values, max_size=5)
resources = st.lists(st.from_regex(r"[a-z]{1,8}\.com/[a-z0-9]{1,8}", fullmatch=True), min_size=1, max_size=4)


def check_message(message):
    assert message
    assert len(message.splitlines()) == 1


def understood(argv, environment):
    """The arguments. A ConfigError must be one line; nothing else may be raised."""
    try:
        return parse(argv, environment)
    except ConfigError as error:
        check_message(str(error))
        raise


@given(st.lists(words, max_size=6), environments)
def test_nothing_on_the_command_line_or_in_the_environment_fails_otherwise(argv, environment):
    with suppress(ConfigError):
        arguments = understood(argv, environment)
        assert isinstance(arguments, Arguments)
        if arguments.command == "node" and not arguments.output:
            assert isinstance(node_config(arguments, environment), NodeConfig)


@given(st.sampled_from([flag for flag in NODE.flags() if flag.variable and not flag.value.boolean]), values)
def test_a_variable_and_each_spelling_of_its_flag_mean_the_same(flag, value):
    def meaning(argv, environment):
        try:
            return vars(understood(argv, environment))
        except ConfigError:
            return None

    if value == "":  # an empty variable counts as not set
        return
    given_as = meaning([], {flag.variable: value})
    for name in (f"-{flag.name}", f"--{flag.name}"):
        assert meaning([f"{name}={value}"], {}) == meaning([name, value], {}) == given_as


@given(resources)
def test_a_list_means_the_same_with_commas_and_repeated(names):
    together = parse(["--nvidia-resource-names", ",".join(names)], {})
    repeated = parse([word for name in names for word in ("--nvidia-resource-names", name)], {})
    assert together.nvidia_resource_names == repeated.nvidia_resource_names == tuple(names)


@given(st.integers(100, 3_600_000), st.integers(1, 65535))
def test_numbers_are_taken_as_they_are(interval, port):
    found = node_config(parse(["-c", str(interval), "-a", f":{port}"], {}), {})
    assert (found.interval, found.web.address) == (interval / 1000, f":{port}")
