"""Which entities a selection has."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.node.devices.entities.component_selection import ComponentSelections
from exporter.node.devices.entities.selection import HIGHEST_ID, Selection, SelectionError, parse_selection
from exporter.node.devices.fields.device_source import ReaderConfig

numbers = st.integers(0, HIGHEST_ID)
ranges = st.tuples(numbers, numbers).map(sorted)
ids = st.lists(st.one_of(numbers.map(lambda n: (n, n)), ranges), min_size=1, max_size=6)


def written(letter, pairs):
    """A part of a selection as text, a number that is a range of itself without its end."""
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in pairs]
    return f"{letter}:{','.join(texts)}" if texts else letter


@given(st.one_of(st.just([]), ids), st.one_of(st.just([]), ids), st.booleans())
def test_every_number_that_is_named_is_selected_and_no_other(wholes, parts, parts_first):
    texts = [written("g", wholes), written("i", parts)]
    selection = parse_selection("+".join(reversed(texts) if parts_first else texts))
    named, named_parts = ({n for low, high in pairs for n in range(low, high + 1)} for pairs in (wholes, parts))
    for number in (0, 1, 7, HIGHEST_ID, *list(named)[:5]):
        assert selection.has_whole(number) == (not named or number in named)
        for part in (0, 5, *list(named_parts)[:3]):
            expected = selection.has_whole(number) and (not named_parts or part in named_parts)
            assert selection.has_part(part, number) == expected


def message_of(text):
    """The message of the error; empty where the text is a selection."""
    try:
        parse_selection(text)
    except SelectionError as error:
        return str(error)
    return ""


@given(st.text(alphabet="fgi:+,-0123456789 x", max_size=20))
def test_any_other_text_is_rejected_with_one_message_that_has_the_value(text):
    message = message_of(text)
    assert "\n" not in message
    assert not message or any(item in message for item in re.split(r"[+:,]", text))


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("f", Selection((), ())),
        ("g", Selection((), None)),
        ("i", Selection(None, ())),
        ("g+i", Selection((), ())),
        ("g:0,2-3", Selection((0, 2, 3), None)),
        ("i:5", Selection(None, (5,))),
        ("g:1+i:0-2", Selection((1,), (0, 1, 2))),
        ("i:2,2,1+g", Selection((), (1, 2))),
    ],
)
def test_a_selection_is_parsed(text, selection):
    assert parse_selection(text) == selection


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not f, g, i, g:IDS or i:IDS, with IDS such as 0,2-5"),
        ("g:", "'g:' is not f, g, i, g:IDS or i:IDS, with IDS such as 0,2-5"),
        ("f+g", "'f' is everything and stands alone, unlike in 'f+g'"),
        ("g:0+i:x", "'i:x' is not f, g, i, g:IDS or i:IDS, with IDS such as 0,2-5"),
        ("g:-1", "'g:-1' is not f, g, i, g:IDS or i:IDS, with IDS such as 0,2-5"),
        ("g:0+g:1", "'g' is there twice in 'g:0+g:1'"),
        ("g:5-2", "5-2 ends before it begins"),
        ("i:0-1024", "1024 is more than 1023"),
    ],
)
def test_what_is_wrong_is_said_with_the_value(text, message):
    with pytest.raises(SelectionError) as error:
        parse_selection(text)
    assert str(error.value) == message


def test_a_selection_reaches_the_reader_process_as_it_was_given():
    selections = ComponentSelections(parse_selection("g:1"), parse_selection("i"))
    config = ReaderConfig("dcgm", (), 1.0, selections=selections)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(config), type=ReaderConfig) == config


def test_parts_alone_are_those_of_every_whole_and_wholes_alone_have_no_parts():
    assert parse_selection("i:3").has_part(3, 9)
    assert not parse_selection("i:3").has_whole(9)
    assert not parse_selection("g:9").has_part(3, 9)
