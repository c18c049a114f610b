"""JAX's functions take a Tensor like a jax.Array, whichever library was imported first."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import zarrow

VALUES = np.arange(6, dtype="f4").reshape(2, 3)


def test_a_tensor_is_a_tree_of_one_array_in_the_same_memory():
    tensor = zarrow.asarray(VALUES, copy=True)  # JAX copies memory that is not aligned to 64 bytes
    leaves, structure = jax.tree.flatten({"x": tensor, "y": [tensor]})
    assert [type(leaf) for leaf in leaves] == [type(jnp.ones(1))] * 2
    assert leaves[0].unsafe_buffer_pointer() == tensor.numpy().ctypes.data
    assert jax.tree.unflatten(structure, [1, 2]) == {"x": 1, "y": [2]}


@pytest.mark.parametrize("dtype", ["f8", "i8", "u8"])
def test_wide_types_are_taken_as_those_of_numpy(dtype):
    values = VALUES.astype(dtype)
    ours, theirs = jnp.cumsum(zarrow.asarray(values)), jnp.cumsum(values)
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("values", [np.array(["a", "b"]), np.array(["2026-01-01"], "M8[D]")])
def test_types_that_jax_lacks_stay_leaves_of_a_tree(values):
    (leaf,) = jax.tree.leaves({"x": zarrow.asarray(values)})
    np.testing.assert_array_equal(leaf, values)


def test_layouts_without_an_array_are_unchanged():
    names = zarrow.asarray(np.array(["a", "b"], np.dtypes.StringDType()))
    masked = zarrow.asarray(np.ma.masked_array(VALUES, VALUES > 3))
    assert all(map(lambda one, other: one is other, jax.tree.leaves([names, masked]), [names, masked]))


IMPORTED_LATER = """
    import numpy as np
    import zarrow

    tensor = zarrow.asarray(np.arange(3, dtype="f4"))
    import jax

    again = zarrow.asarray(np.arange(3, dtype="f4"))
    assert jax.jit(lambda x: x.sum())(tensor) == jax.jit(lambda x: x.sum())(again) == 3
"""


def test_jax_may_be_imported_after_zarrow():
    subprocess.run([sys.executable, "-c", textwrap.dedent(IMPORTED_LATER)], check=True, timeout=120)
