"""A series of maps that grows by a day, with CF attributes: monthly means, anomalies, gaps.

Ported from zarr-python 3: `# was:` marks each changed line, with the original.
"""

import numpy as np

import zarrow as zarr  # was: import zarr

DAYS, LATITUDES, LONGITUDES = 90, 18, 36
FILL = np.float32(-9999)


def observe(day):
    """Precipitation of one day, with gaps in the satellite's coverage."""
    rng = np.random.default_rng(day)
    field = rng.gamma(0.8, 4.0, (LATITUDES, LONGITUDES)).astype("f4")
    field[:, (day * 5) % LONGITUDES : (day * 5) % LONGITUDES + 3] = FILL
    return field


def create(path):
    root = zarr.create_group(path, overwrite=True)
    root.attrs.update({"Conventions": "CF-1.10", "title": "daily precipitation", "history": []})
    root.create_array(
        "latitude", data=np.linspace(-85, 85, LATITUDES, dtype="f4"), dimension_names=["latitude"]
    )
    root.create_array(
        "longitude", data=np.linspace(0, 350, LONGITUDES, dtype="f4"), dimension_names=["longitude"]
    )
    time = root.create_array("time", shape=(0,), chunks=(30,), dtype="i4", dimension_names=["time"])
    time.attrs.update({"units": "days since 2024-01-01", "calendar": "standard"})
    rain = root.create_array(
        "rain",
        shape=(0, LATITUDES, LONGITUDES),
        chunks=(10, LATITUDES, LONGITUDES),
        dtype="f4",
        fill_value=FILL,
        dimension_names=["time", "latitude", "longitude"],
    )
    rain.attrs.update({"units": "mm/day", "long_name": "precipitation", "_FillValue": float(FILL)})
    return root


def append_day(root, day):
    root["time"].append(np.array([day], dtype="i4"))
    root["rain"].append(observe(day)[np.newaxis])


def masked(values):
    return np.ma.masked_equal(np.asarray(values), FILL)


def monthly_means(root):
    """Monthly means, written as a separate array."""
    days = root["time"][:].numpy()  # was: days = root["time"][:]
    dates = np.datetime64("2024-01-01") + days
    months = dates.astype("M8[M]")
    names, starts = np.unique(months, return_index=True)
    means = root.require_array(
        "monthly",
        shape=(len(names), LATITUDES, LONGITUDES),
        chunks=(1, LATITUDES, LONGITUDES),
        dtype="f4",
        fill_value=FILL,
    )
    ends = [*starts[1:], len(days)]
    for month, (start, end) in enumerate(zip(starts, ends, strict=True)):
        means[month] = masked(root["rain"][start:end]).mean(axis=0).filled(FILL).astype("f4")
    means.attrs["months"] = [str(name) for name in names]
    return means


def weighted_mean(root, field):
    """Global mean, weighted by the area of each row."""
    weights = np.cos(np.deg2rad(np.asarray(root["latitude"][:])))
    rows = masked(field).mean(axis=-1)
    return float(np.ma.average(rows, weights=weights, axis=-1))


def main():
    root = create("rain.zarr")
    for day in range(DAYS):
        append_day(root, day)
    root.attrs["history"] = [*root.attrs["history"], f"{DAYS} days appended"]

    root = zarr.open_group("rain.zarr", mode="r+")
    rain = root["rain"]
    print(rain.shape, rain.chunks, rain.nchunks, rain.nchunks_initialized, rain.attrs["units"])
    print(root["time"][-3:].tolist(), root.attrs["history"])
    print(sorted(root.array_keys()), rain.fill_value == FILL, rain.order)

    first = masked(rain[0])
    print(first.count(), round(float(first.mean()), 4), round(weighted_mean(root, rain[0]), 4))

    means = monthly_means(root)
    print(means.shape, means.attrs["months"])
    print([round(weighted_mean(root, means[month]), 4) for month in range(3)])

    january = masked(means[0])
    anomaly = masked(rain[10]) - january
    print(anomaly.count(), round(float(anomaly.std()), 4))

    # One day has new observations, and a row of the map is corrected.
    rain[10] = observe(1010)
    rain[:, 0, :] = FILL
    rain.oindex[[0, 1], 17, slice(0, 2)] = np.float32(0.5)
    print(masked(rain[:, 0, :]).count(), rain[0, 17, :3].tolist()[:2])

    # Points along a track, one for each day.
    track = (np.arange(5), np.arange(5) + 3, np.arange(5) * 2)
    print([round(value, 4) for value in rain.vindex[track].tolist()])

    wet = rain.get_basic_selection((slice(0, 30, 10), 9)) > 10
    print(int(wet.sum()), zarr.consolidate_metadata("rain.zarr")["rain"].shape)


if __name__ == "__main__":
    main()
