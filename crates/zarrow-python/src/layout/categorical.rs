//! The class `Categorical`: values with few categories, as codes and categories.

use crate::export::arrow::Capsules;
use crate::layout::decoded_array::{DecodedArray, wrap};
use crate::layout::tensor::Tensor;
use crate::python::capsule;
use crate::python::error::Raise;
use crate::python::importing::import;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use zarrow_array::export::arrow::{self, ArrowForm, ArrowPair};
use zarrow_array::{DecodedArray as Decoded, SharedTensor};

#[doc = help!("Categorical")]
#[pyclass(frozen, module = "zarrow")]
pub struct Categorical {
    codes: Py<Tensor>,
    categories: Py<DecodedArray>,
    ordered: bool,
}

impl Categorical {
    /// Creates the Python object of codes and categories. Nothing is copied.
    pub fn create(
        py: Python<'_>,
        codes: SharedTensor,
        categories: Decoded,
        ordered: bool,
    ) -> PyResult<Bound<'_, Categorical>> {
        let codes = Tensor::create(py, codes)?.unbind();
        let categories = wrap(py, categories)?.cast_into::<DecodedArray>()?.unbind();
        Bound::new(py, Categorical { codes, categories, ordered })
    }

    /// Creates a Categorical from the Python objects of its parts.
    pub fn from_parts(codes: Py<Tensor>, categories: Py<DecodedArray>, ordered: bool) -> Categorical {
        Categorical { codes, categories, ordered }
    }

    fn pair(&self, py: Python<'_>) -> PyResult<ArrowPair> {
        let codes = self.codes.get().shared();
        let (schema, values) = crate::export::arrow::nodes(self.categories.bind(py), ArrowForm::default())?;
        let schema = arrow::dictionary_schema(codes.dtype(), schema, self.ordered).raise(py)?;
        Ok((schema.into_c(), arrow::dictionary_memory(codes, values).raise(py)?.into_c()))
    }

    /// Calls `function` of `zarrow.arrays.categorical` with codes and categories.
    fn decoded<'py>(&self, py: Python<'py>, function: &str) -> PyResult<Bound<'py, PyAny>> {
        let parts = (self.codes.bind(py), self.categories.bind(py));
        import(py, "zarrow.arrays.categorical")?.call_method1(function, parts)
    }
}

#[pymethods]
impl Categorical {
    #[doc = help!("Categorical.codes")]
    #[getter]
    fn codes(&self, py: Python<'_>) -> Py<Tensor> {
        self.codes.clone_ref(py)
    }

    #[doc = help!("Categorical.categories")]
    #[getter]
    fn categories(&self, py: Python<'_>) -> Py<DecodedArray> {
        self.categories.clone_ref(py)
    }

    #[doc = help!("Categorical.ordered")]
    #[getter]
    fn ordered(&self) -> bool {
        self.ordered
    }

    #[doc = help!("Categorical.shape")]
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.codes.get().shared().shape())
    }

    fn __len__(&self) -> usize {
        self.codes.get().shared().size()
    }

    #[doc = help!("Categorical.numpy")]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.decoded(py, "numpy")
    }

    #[doc = help!("Categorical.tolist")]
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.decoded(py, "tolist")
    }

    #[doc = help!("Categorical.arrow")]
    fn arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        import(slf.py(), "pyarrow")?.call_method1("array", (slf,))
    }

    #[doc = help!("Categorical.polars")]
    fn polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        import(slf.py(), "polars")?.call_method1("Series", (slf,))
    }

    #[doc = help!("Categorical.__arrow_c_schema__")]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::arrow_schema(py, self.pair(py)?.0)
    }

    #[doc = help!("Categorical.__arrow_c_array__")]
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        // A requested schema is only a preference; this producer ignores it.
        let _ = requested_schema;
        capsule::arrow_array(py, self.pair(py)?)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let order = if self.ordered { "ordered " } else { "" };
        let (length, categories) = (self.__len__(), self.categories.bind(py).len()?);
        Ok(format!(
            "<zarrow.Categorical ({length},) of {categories} {order}categories>\n{}",
            self.numpy(py)?.str()?
        ))
    }
}
