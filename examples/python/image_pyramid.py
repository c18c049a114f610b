"""A multiscale image as OME-Zarr 0.5 describes it: written level by level, then read by crop.

Ported from zarr-python 3: `# was:` marks each changed line, with the original.
"""

import numpy as np

import zarrow as zarr  # was: import zarr

CHANNELS, HEIGHT, WIDTH, LEVELS = 2, 512, 768, 4
AXES = [
    {"name": "c", "type": "channel"},
    {"name": "y", "type": "space", "unit": "micrometer"},
    {"name": "x", "type": "space", "unit": "micrometer"},
]


def acquire():
    """Two channels of cells: bright discs on a noisy background."""
    rng = np.random.default_rng(7)
    image = rng.poisson(20, (CHANNELS, HEIGHT, WIDTH)).astype("u2")
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for _ in range(40):
        channel, row, column, radius = (
            rng.integers(CHANNELS),
            rng.integers(HEIGHT),
            rng.integers(WIDTH),
            rng.integers(8, 24),
        )
        image[channel][(y - row) ** 2 + (x - column) ** 2 < radius**2] += 400
    return image


def halve(image):
    """Mean of each 2 by 2 block."""
    c, h, w = image.shape
    return image.reshape(c, h // 2, 2, w // 2, 2).mean(axis=(2, 4)).astype(image.dtype)


def write_pyramid(path, image):
    root = zarr.open_group(path, mode="w")
    datasets = []
    for level in range(LEVELS):
        array = root.create_array(
            str(level),
            shape=image.shape,
            chunks=(1, 64, 64),
            shards=(1, 256, 256) if level == 0 else None,
            dtype=image.dtype,
            dimension_names=["c", "y", "x"],
        )
        for channel in range(image.shape[0]):
            array[channel] = image[channel]
        scale = [1.0, 0.5 * 2**level, 0.5 * 2**level]
        datasets.append(
            {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        )
        image = halve(image)
    root.attrs["ome"] = {
        "version": "0.5",
        "multiscales": [{"name": "cells", "axes": AXES, "datasets": datasets}],
    }
    return root


def write_labels(root, threshold):
    """A mask of the cells beside the image, in a separate group, as the specification requires."""
    image = root["0"]
    labels = root.require_group("labels")
    labels.attrs["ome"] = {"version": "0.5", "labels": ["cells"]}
    cells = labels.create_array("cells/0", shape=image.shape[1:], chunks=(128, 128), dtype="u1")
    for row in range(0, HEIGHT, 128):
        for column in range(0, WIDTH, 128):
            block = image[:, row : row + 128, column : column + 128]
            bright = (block > threshold).any(axis=0)
            cells[row : row + 128, column : column + 128] = bright.astype("u1")
    return cells


def level_for(root, micrometers_per_pixel):
    """The coarsest level that is at least as fine as requested."""
    multiscale = root.attrs["ome"]["multiscales"][0]
    found = multiscale["datasets"][0]["path"]
    for dataset in multiscale["datasets"]:
        if dataset["coordinateTransformations"][0]["scale"][-1] <= micrometers_per_pixel:
            found = dataset["path"]
    return root[found]


def main():
    image = acquire()
    write_pyramid("cells.ome.zarr", image)

    root = zarr.open_group("cells.ome.zarr", mode="r+")
    print(sorted(root.array_keys()), [root[str(level)].shape for level in range(LEVELS)])
    full = root["0"]
    names = full.metadata["dimension_names"]  # was: names = full.metadata.dimension_names
    print(full.shards, full.chunks, full.cdata_shape, full.dtype, list(names))

    crop = full[0, 100:164, 200:264]
    print(np.array_equal(crop, image[0, 100:164, 200:264]), crop.max().item(), crop.dtype)
    overview = level_for(root, 2.5)
    print(overview.path, overview.shape, round(float(overview[:].mean()), 3))

    centres = np.array([[40, 60], [200, 300], [500, 700]])
    print(full.vindex[0, centres[:, 0], centres[:, 1]].tolist())
    print(full.oindex[1, [0, 511], slice(0, 4)].shape)

    cells = write_labels(root, 300)
    share = int(cells[:].sum()) / cells.size
    print(cells.path, round(share, 4), cells.nchunks_initialized, cells.nchunks)
    print([path for path, _ in sorted(root.members(max_depth=None))])


if __name__ == "__main__":
    main()
