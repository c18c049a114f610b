"""Checks that `zarrow_array::allocation` allocates all memory that grows with data, and so reports failures.

A failed allocation of the standard library ends the process. This file lists the remaining calls, with the
bound of each. The search misses other ways to allocate text and lists (`to_vec`, `format!`, `collect`).
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent / "crates"
GROWS = re.compile(
    r"\b(?:Vec|String)(?:::<[^>]*>)?::with_capacity\(|\.reserve(?:_exact)?\(|\.resize\(|\bvec!\[[^\]]*;|\.repeat\("
)

AXES, WORDS = "an item an axis", "an item a word of an element"
ASKED = "room was made on the line before"
ITEM = "an element, of DecodeLimits.max_item_nbytes at most"
TEXT = "a part of a document, which is in memory, of DecodeLimits.max_metadata_nbytes at most"

# Number of calls in each file, and their bounds.
BOUNDED = {
    "zarrow-array/src/allocation.rs": (2, ASKED),
    "zarrow-array/src/layout/strided_copy.rs": (2, AXES),
    "zarrow-array/src/layout/strided_layout.rs": (1, AXES),
    "zarrow-array/src/shape.rs": (1, AXES),
    "zarrow/src/codec/endian.rs": (4, WORDS),
    "zarrow/src/codec/array_to_array/element.rs": (1, ASKED),
    "zarrow/src/codec/array_to_bytes/shard_index.rs": (2, f"{ASKED}; {AXES}"),
    "zarrow/src/codec/permutation.rs": (2, AXES),
    "zarrow/src/decode/open_chunk.rs": (1, "a path"),
    "zarrow/src/write/shard.rs": (3, "a fallible method with this name"),
    "zarrow/src/node/hierarchy/chunks_outside.rs": (1, AXES),
    "zarrow/src/node/hierarchy/resize.rs": (2, AXES),
    "zarrow/src/read/map.rs": (2, "an item a shard of a few thousand maps; " + AXES),
    "zarrow/src/metadata/fill_value.rs": (4, ITEM),
    "zarrow/src/metadata/member_spans.rs": (1, TEXT),
    "zarrow/src/metadata/write_v2.rs": (2, WORDS),
    "zarrow/src/selection/basic.rs": (1, AXES),
    "zarrow/src/selection/mod.rs": (1, AXES),
    "zarrow/src/selection/bounded_parts.rs": (1, AXES),
    "zarrow/src/selection/points.rs": (1, AXES),
    "zarrow/src/store/filesystem_writer.rs": (1, "a path"),
    "zarrow/src/store/memory_writer.rs": (1, ASKED),
    "zarrow/src/node/array/stored_chunks.rs": (1, AXES),
    "zarrow/src/error/visible.rs": (1, "a message"),
}


def sources() -> dict[str, str]:
    """Return each source file of the engine without its tests."""
    found = {}
    for crate in ("zarrow", "zarrow-array"):
        for path in (ROOT / crate / "src").rglob("*.rs"):
            name = path.relative_to(ROOT)
            if "tests" not in name.parts and path.name not in ("tests.rs", "interleaving.rs"):
                text = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests")[0]
                found[str(name)] = text
    return found


def test_growing_memory_is_allocated_fallibly() -> None:
    found = {}
    for name, text in sources().items():
        lines = [line.strip() for line in text.splitlines()]
        hits = [line for line in lines if GROWS.search(line) and not line.startswith("//")]
        if len(hits) != BOUNDED.get(name, (0, ""))[0]:
            found[name] = hits
    assert not found, f"take it by zarrow_array::allocation, or say here what bounds it: {found}"
    assert set(BOUNDED) <= set(sources())
