"""The `compressors=` of zarrow for the compression options of h5py, netCDF and numcodecs.

1. Options such as `compression="gzip"`, `compression_opts=7` and `shuffle=True` are one codec here. The hint
   shows it with their values.
2. A shuffle of bytes is part of the codec blosc, which has the same compressors inside.
3. Values of unknown form give no hint: `zarrow.hints.familiar_options` has a general one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_LEVELS = ("compression_opts", "complevel", "compression_level", "clevel", "level")
_NAMES = frozenset((*_LEVELS, "codec", "compression", "fletcher32", "shuffle", "zlib"))
# The codec of Zarr, and the compressor inside blosc, for each name of a compression.
_CODECS = {
    "gzip": ("gzip", "zlib"),
    "zlib": ("gzip", "zlib"),
    "zstd": ("zstd", "zstd"),
    "blosc": ("blosc", "zstd"),
    "lz4": ("blosc", "lz4"),
    "lzf": ("blosc", "lz4"),
}


def for_compression(options: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the options that `compressors=` replaces, and its text; empty if a value is unknown."""
    named = {name: value for name, value in options.items() if name in _NAMES}
    set_ones = {name: value for name, value in named.items() if value is not None and value is not False}
    if not named:
        return [], ""
    is_off = any(name in named and name not in set_ones for name in ("compression", "zlib"))
    if not set_ones or (is_off and not {"compression", "codec", "fletcher32"} & {*set_ones}):
        return list(named), "compressors=None, or leave it out for the default"
    level = next((set_ones[name] for name in _LEVELS if name in set_ones), None)
    chosen = set_ones.get("compression", set_ones.get("codec"))
    if isinstance(chosen, int):  # gzip in h5py, with this level unless it is True
        level = chosen if level is None and not isinstance(chosen, bool) else level
        chosen = "gzip"
    if chosen is None:
        is_deflate = {"zlib", "complevel"} & {*set_ones}
        chosen = "gzip" if is_deflate else "blosc" if {"clevel", "shuffle"} & {*set_ones} else "zstd"
    shuffle = set_ones.get("shuffle", False)
    shuffle = "shuffle" if shuffle in (True, 1) else shuffle
    is_known = isinstance(chosen, str) and chosen.lower() in _CODECS
    if not is_known or not isinstance(level, int | None) or shuffle not in (False, "shuffle", "bitshuffle"):
        return [], ""
    codec = _spelled(*_CODECS[chosen.lower()], level, shuffle)
    if "fletcher32" in set_ones:
        codec = '["crc32c"]' if len(set_ones) == 1 else f'[{codec}, "crc32c"]'
    return list(named), f"compressors={codec}"


def _spelled(codec: str, inner: str, level: int | None, shuffle: Any) -> str:
    """Return the source text of a codec."""
    configuration: dict[str, Any] = {}
    if codec == "blosc" or shuffle:
        codec, configuration["cname"] = "blosc", inner
    if level is not None:
        configuration["clevel" if codec == "blosc" else "level"] = int(level)
    if shuffle:
        configuration["shuffle"] = shuffle
    return json.dumps({"name": codec, "configuration": configuration} if configuration else codec)
