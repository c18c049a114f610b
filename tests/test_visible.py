"""Names from a store are shown with escapes, because a terminal obeys control characters."""

from __future__ import annotations

import json
import unicodedata

import pytest

import zarrow
from zarrow.cli import main

# Clears the screen, ends the line, reverses the direction, starts a command by one byte, hides.
HOSTILE = "a\x1b[2J\n\r\t\u202eb\x9b1m\u2066\x7f\u200b\u2028\U000e0041"
SHOWN = r"a\x1b[2J\n\r\t\u202eb\x9b1m\u2066\x7f\u200b\u2028\U000e0041"
# Real text, including joined emoji and combining marks.
HARMLESS = "Grün 東京 e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 क्‍ष"


def is_safe(text: str) -> bool:
    return not any(
        unicodedata.category(one) in ("Cc", "Zl", "Zp") or unicodedata.bidirectional(one) in BIDI
        for one in text
        if one != "\n"
    )


BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@pytest.fixture
def group(tmp_path):
    root = zarrow.create_group(tmp_path / "store", attributes={HOSTILE: HOSTILE, "plain": HARMLESS})
    dtype = [(HOSTILE, "i4"), (HARMLESS, "f4")]
    root.create_array(HOSTILE, shape=(2, 3), dtype=dtype, dimension_names=[HOSTILE, HARMLESS])
    root.create_group(f"inner/{HARMLESS}")
    return zarrow.open(tmp_path / "store")


def test_shown_names_are_safe(group):
    array = group[HOSTILE]
    texts = [
        repr(group),
        str(group.tree()),
        repr(array),
        repr(array.oindex),
        repr(array[...]),
        repr(group.attrs),
    ]
    texts += [group._repr_html_(), array._repr_html_(), group.tree()._repr_html_(), array[...]._repr_html_()]
    for text in texts:
        assert is_safe(text), text
    for text in texts[:4]:
        assert SHOWN in text
    assert HARMLESS in str(group.tree()) and HARMLESS in repr(array)
    assert array.name == f"/{HOSTILE}" and array.dimension_names[0] == HOSTILE


def test_errors_are_shown_safely(group, tmp_path):
    with pytest.raises(zarrow.NotFoundError) as raised:
        group[f"{HOSTILE}/none"]
    assert is_safe(str(raised.value)) and "\n" not in str(raised.value)
    assert raised.value.path == f"{HOSTILE}/none"
    document = json.loads((tmp_path / "store" / HOSTILE / "zarr.json").read_text())
    for change in (
        {"codecs": [{"name": HOSTILE}]},
        {"data_type": HOSTILE},
        {HOSTILE: 1},
        {"fill_value": HOSTILE},
        {"chunk_key_encoding": HOSTILE},
    ):
        (tmp_path / "store" / HOSTILE / "zarr.json").write_text(json.dumps({**document, **change}))
        for read in (lambda: group[HOSTILE][...], lambda: zarrow.open(tmp_path / "store")[HOSTILE][...]):
            try:
                read()
            except zarrow.ZarrowError as error:
                assert is_safe(str(error)) and "\n" not in str(error), change
        assert is_safe(repr(zarrow.open(tmp_path / "store")))


@pytest.mark.parametrize("command", ["info", "tree"])
@pytest.mark.parametrize("path", ["", HOSTILE])
def test_the_command_shows_names_safely(group, tmp_path, capsys, command, path):
    main([command, str(tmp_path / "store" / path)])
    shown = capsys.readouterr()
    assert is_safe(shown.out) and is_safe(shown.err)
    assert SHOWN in shown.out + shown.err


def test_the_command_shows_halves_of_pairs(tmp_path, capsys):
    zarrow.create_group(tmp_path / "g", attributes={"half \ud800": "\udfff"})
    assert main(["info", str(tmp_path / "g")]) == 0
    shown = capsys.readouterr().out
    assert r"half \ud800" in shown and shown.encode()
