"""Subcommands and options of other tools, each with the line to type instead."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from zarrow.hints.by_name import by_name
from zarrow.hints.close_names import close_name

# {store} and {target} stand for the first two arguments, {chunks} for the value of --chunks.
_VERBS = by_name(
    {
        "zarrow head {store} for the first elements, or zarrow export {store} values.npy for all": (
            "cat dump less more peek print show tail"
        ),
        "zarrow copy {store} {target} --chunks {chunks}": "chunk rechunk rechunker reshard shard",
        "zarrow convert {store} for version 3 in place, or zarrow copy {store} {target} --format 3": (
            "migrate update upgrade"
        ),
        "zarrow copy {store} {target}": "clone cp recompress transcode",
        "zarrow copy {store} {target}, then zarrow rm {store}": "move mv rename",
        "zarrow rm {store}": "delete del erase remove",
        "zarrow info {store}": "attrs describe inspect meta metadata ncdump h5dump open stat",
        "zarrow info {store} ARRAY --stats": "max mean min stats summarize summary",
        "zarrow info {store} ARRAY --histogram": "hist histogram",
        "zarrow ls {store}": "dir keys list",
        "zarrow ls -l {store}": "du ll size",
        "zarrow verify {store}": "check fsck lint test validate",
        "zarrow digest {store}": "checksum hash md5 sha256 sum",
        "zarrow diff {store} {target}": "cmp compare",
        "zarrow pyramid {store}": "downsample multiscale multiscales overviews",
        "zarrow consolidate {store}": "consolidate-metadata consolidate_metadata",
        "zarrow --version": "version",
        "zarrow --help": "help usage",
    }
)
_COPY = {
    "--zarr-format": "--format",
    "--zarr_format": "--format",
    "--to": "--format",
    "--compressor": "--codec",
    "--compression": "--codec",
    "--chunk-size": "--chunks",
    "--chunk": "--chunks",
    "--shard": "--shards",
    "--force": "--overwrite",
    "--workers": "--jobs",
    "--threads": "--jobs",
    "--target-chunks": "--chunks",
    "--max-mem": "--memory",
}
_OPTIONS = {
    "copy": _COPY,
    "head": {"--lines": "--rows", "--count": "--rows", "--num": "--rows"},
    "info": {"--hist": "--histogram", "--statistics": "--stats", "--verbose": "--stats"},
    "rm": {"--force": "--yes", "-f": "--yes", "-rf": "--yes", "-r": "nothing: everything below is erased"},
    "tree": {"-L": "--depth"},
    "ls": {"-R": "zarrow tree", "--recursive": "zarrow tree", "-a": "nothing: all members are listed"},
    "convert": {"--delete-v2": "--remove-v2", "--remove": "--remove-v2", "--force": "nothing: leave it out"},
}


def for_subcommand(arguments: Sequence[str], known: Sequence[str]) -> str:
    """Return the message for an unknown subcommand, with the line to type."""
    name, *rest = arguments
    chunks = "100,100"
    if "--chunks" in rest[:-1]:
        at = rest.index("--chunks")
        chunks = rest[at + 1]
        del rest[at : at + 2]
    places = [argument for argument in rest if not argument.startswith("-")]
    if name.lower() == "migrate" and places[:1] in (["v3"], ["v2"]):  # zarr migrate v3 STORE
        places = places[1:]
    store, target = (*places[:2], *("STORE", "TARGET")[len(places[:2]) :])
    text = _VERBS.get(name.lower(), "").format(store=store, target=target, chunks=chunks)
    hint = f"type {text}" if text else close_name(name, known)
    return f"no subcommand {name!r}: {hint or 'zarrow --help lists them'}"


def for_extra(subcommand: str, extra: Sequence[str], parsed: argparse.Namespace, known: Sequence[str]) -> str:
    """Return the message for arguments that a subcommand does not take, with what to type."""
    text = f"unrecognized arguments: {' '.join(extra)}"
    option = extra[0].partition("=")[0]
    if subcommand == "convert" and not option.startswith("-"):
        return f"{text}: convert works in place; type zarrow copy {parsed.store} {option} --format 3"
    if not option.startswith("-"):
        return f"{text}: zarrow {subcommand} --help lists its arguments"
    said = _OPTIONS.get(subcommand, {}).get(option, "")
    if said.startswith("nothing: "):
        return f"{text}: {said.removeprefix('nothing: ')}"
    hint = f"type {said}" if said else close_name(option, known)
    return f"{text}: {hint or f'zarrow {subcommand} --help lists its options'}"
