//! Runs the examples one after the other on one store, as their users would.
#![cfg(feature = "ndarray")]
#![allow(clippy::unwrap_used, dead_code, missing_docs, reason = "tests, and the examples' own `main`")]

#[path = "../examples/random_crops.rs"]
mod random_crops;
#[path = "../examples/read_ndarray.rs"]
mod read_ndarray;
#[path = "../examples/write_ndarray.rs"]
mod write_ndarray;

#[test]
fn examples_read_each_others_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weather.zarr");
    write_ndarray::run(&path).unwrap();
    assert!(write_ndarray::run(&path).is_err(), "there is a group already");

    let means = read_ndarray::run(&path).unwrap();
    assert_eq!(means.len(), 24);
    // Rows 1 to 58 and columns 1 to 78 have the means 2.95 and 0.395; the first day equals the last.
    for (number, (mean, day)) in
        means.iter().zip([47.0].into_iter().chain((2..).step_by(2).map(f64::from))).enumerate()
    {
        assert!((mean - (day + 2.95 + 0.395)).abs() < 1e-4, "{number}: {mean}");
    }
    assert_eq!(random_crops::run(&path).unwrap(), [32, 16, 16]);

    let time = zarrow::Group::open(&path).unwrap().array("time").unwrap();
    let days = time.read(..).unwrap().into_tensor().unwrap();
    assert!(days.as_slice::<i64>().unwrap().iter().copied().eq(0..48));
}
