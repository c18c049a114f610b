"""The usual tour of Zarr: arrays, chunks, attributes, groups, selections, resizing, copies.

Ported from zarr-python 3: `# was:` marks each changed line, with the original.
"""

import numpy as np
from numcodecs import Blosc, Delta
from zarr.codecs import BloscCodec, GzipCodec

import zarrow as zarr  # was: import zarr

# Creating an array, and writing to it.
z = zarr.create_array(store="data/example-1.zarr", shape=(1000, 1000), chunks=(100, 100), dtype="i4")
print(z.shape, z.chunks, z.dtype, z.nchunks, z.nchunks_initialized)
z[:] = 42
z[0, :] = np.arange(1000)
z[:, 0] = np.arange(1000)
print(z[0, 0].item(), z[-1, -1].item(), z[0, :5].tolist(), z[:5, 0].tolist(), z.nchunks_initialized)

# Opening it again finds the data.
z2 = zarr.open("data/example-1.zarr", mode="r")
print(np.all(z2[:].numpy() == z[:].numpy()))  # was: print(np.all(z2[:] == z[:]))
print(z2.read_only, z2.nbytes, z2.cdata_shape, z2.ndim, z2.size)

# Counterparts of NumPy's functions, in one line each.
zarr.save("data/example-2.zarr", np.arange(10))
print(zarr.load("data/example-2.zarr").tolist())
print(zarr.zeros((2, 3), dtype="i4")[:].tolist(), zarr.ones(2)[:].tolist(), zarr.full(2, 7.5)[:].tolist())

# Resizing and appending.
z = zarr.create_array(store="data/example-3.zarr", shape=(100, 10), dtype="i4", chunks=(10, 10))
z[:] = 1
z.resize((200, 10))
print(z.shape, int(z[:].sum()), z.cdata_shape)
z.append(np.full((20, 10), 2, dtype="i4"))
z.append(np.vstack([np.full((220, 1), 3, dtype="i4")]), axis=1)
print(z.shape, int(z[:].sum()))

# Compressors and filters, in both versions of the format.
values = np.arange(100000, dtype="i4").reshape(1000, 100)
z = zarr.create_array(
    store="data/example-4.zarr",
    data=values,
    chunks=(100, 100),
    compressors=BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle"),
)
print(len(z.compressors), z.nbytes, np.array_equal(z, values))
z = zarr.create_array(
    store="data/example-5.zarr",
    data=values,
    chunks=(100, 100),
    filters=[Delta(dtype="i4")],
    compressors=Blosc(cname="zstd", clevel=1, shuffle=Blosc.SHUFFLE),
    zarr_format=2,
)
print(len(z.filters), len(z.compressors), np.array_equal(z[10:20, 5], values[10:20, 5]))

# Shards: many chunks in one file.
z = zarr.create_array(
    store="data/example-6.zarr",
    shape=(100, 100),
    shards=(50, 50),
    chunks=(10, 10),
    dtype="uint8",
    compressors=GzipCodec(level=5),
)
z[:50, :50] = 7
print(z.shards, z.chunks, z.nchunks, z.nchunks_initialized, z.fill_value)

# Groups and attributes.
root = zarr.open_group("data/example-7.zarr", mode="w")
foo = root.create_group("foo")
bar = root.require_group("foo/bar")
spam = foo.create_array(name="spam", shape=(10,), dtype="i4")
eggs = bar.require_array("eggs", shape=(6, 5), dtype="f8", chunks=(2, 5))
eggs[...] = np.arange(30).reshape(6, 5)
root.attrs["title"] = "breakfast"
spam.attrs.update(units="slices", fresh=True, sizes=[1, 2, 3])
print("foo/bar/eggs" in root, root["foo"]["bar"].name, root["foo/bar/eggs"].basename)
print(sorted(root.group_keys()), sorted(foo.array_keys()), sorted(foo.group_keys()))
print(sorted(path for path, _ in root.members(max_depth=None)))
print(dict(root.attrs), sorted(spam.attrs), "units" in spam.attrs, len(spam.attrs))
print(root.tree(level=0) is not None, foo.nmembers(), bar.read_only)

# Selections: orthogonal, by coordinates, by masks, by blocks.
print(eggs.oindex[[5, 0], :2].tolist())
print(eggs.vindex[[0, 2, 4], [1, 3, 0]].tolist())
print(eggs.get_orthogonal_selection(([0, 1], [4, 3])).tolist())
print(eggs.get_coordinate_selection(([5, 1], [0, 2])).tolist())
mask = np.arange(30).reshape(6, 5) % 10 == 0
print(eggs.get_mask_selection(mask).tolist(), eggs.blocks[1].shape)
eggs.set_mask_selection(mask, -1)
eggs.oindex[[1, 2], [1, 2]] = np.zeros((2, 2))
eggs.set_coordinate_selection(([0, 5], [4, 4]), [100, 200])
print(eggs[:].sum().item())

# Structures and dates.
people = np.array(
    [("Ada", 36, 1.6), ("Alan", 41, 1.8)], dtype=[("name", "S8"), ("age", "i4"), ("size", "f4")]
)
z = zarr.create_array(store="data/example-8.zarr", data=people, zarr_format=2)
print(z["age"].tolist())  # was: print(z[:]["age"].tolist())
print(z[1]["name"].item())
z = zarr.create_array(store="data/example-9.zarr", shape=3, dtype="M8[D]", chunks=3, zarr_format=2)
z[:2] = np.array(["2007-07-13", "2006-01-13"], dtype="M8[D]")
print(np.asarray(z[:]).astype(str).tolist())

# Erasing and replacing.
root["foo/spam"] = np.arange(4)
del root["foo/bar"]
print(root["foo/spam"][:].tolist(), "foo/bar" in root, foo.nmembers())
