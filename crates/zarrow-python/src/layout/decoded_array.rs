//! The base class of the four layouts.

use crate::export::arrow::{self, ArrowChoice, RequestedForm};
use crate::export::numpy;
use crate::layout::consumers::introduce;
use crate::layout::masked_tensor::MaskedTensor;
use crate::layout::masked_variable::MaskedVariable;
use crate::layout::shown;
use crate::layout::tensor::Tensor;
use crate::layout::variable::Variable;
use crate::python::argument::{argument, known};
use crate::python::error::{Raise, exchange};
use crate::python::importing::import;
use crate::python::summary::{Summary, nbytes, tuple};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use zarrow::visible;
use zarrow_array::DataType;
use zarrow_array::shape::{self, Axes};

#[doc = help!("DecodedArray")]
#[pyclass(frozen, subclass, module = "zarrow")]
pub struct DecodedArray {
    shape: Axes<u64>,
    dtype: DataType,
    nbytes: usize,
}

impl DecodedArray {
    /// Creates the base of a layout; `nbytes` counts all of its buffers.
    pub fn new(shape: impl Into<Axes<u64>>, dtype: &DataType, nbytes: usize) -> DecodedArray {
        DecodedArray { shape: shape.into(), dtype: dtype.clone(), nbytes }
    }

    /// Returns the shape.
    pub fn extents(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the text form: a header line and the values.
    pub fn text(&self, class: &str, values: &str) -> String {
        let (shape, bytes) = (tuple(&self.shape), nbytes(self.nbytes as u64));
        let dtype = self.dtype.to_string();
        format!("<zarrow.{class} {shape} {} on cpu, {bytes}>\n{values}", visible(&dtype))
    }

    /// Returns the HTML form.
    pub fn html(&self, class: &str, values: &str) -> String {
        Summary::new(format!("zarrow.{class}"))
            .row("shape", tuple(&self.shape))
            .row("type", self.dtype.to_string())
            .row("size", nbytes(self.nbytes as u64))
            .row("device", "cpu")
            .html(values)
    }

    /// Returns the error for exports that would drop the mask.
    pub fn refuse_unmasked(py: Python<'_>, protocol: &str) -> PyErr {
        let message = format!(
            "{protocol} would drop the mask of this array: call .arrow().to_pandas() for pandas, .filled(value) for \
             an array without missing elements, or .numpy() for a numpy.ma array, which shares this memory; .data \
             and .mask are its parts"
        );
        exchange(py, "masked", message)
    }
}

/// Creates the Python object of one of the four layouts. Nothing is copied.
pub fn wrap(py: Python<'_>, decoded: zarrow_array::DecodedArray) -> PyResult<Bound<'_, PyAny>> {
    use zarrow_array::DecodedArray as Decoded;
    introduce(py)?;
    Ok(match decoded {
        Decoded::Tensor(tensor) => Tensor::create(py, tensor.into_shared().raise(py)?)?.into_any(),
        Decoded::Variable(variable) => Variable::create(py, variable)?.into_any(),
        Decoded::MaskedTensor(masked) => MaskedTensor::create(py, masked)?.into_any(),
        Decoded::MaskedVariable(masked) => MaskedVariable::create(py, masked)?.into_any(),
    })
}

/// Adds aliases such as `to_numpy` for the methods `numpy` and so on.
pub fn add_aliases(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for class in ["DecodedArray", "Tensor", "Variable", "MaskedTensor", "MaskedVariable"] {
        let class = module.getattr(class)?;
        for name in ["numpy", "torch", "jax", "arrow", "polars"] {
            if let Some(method) = class.getattr_opt(name)? {
                class.setattr(format!("to_{name}"), method)?;
            }
        }
    }
    Ok(())
}

#[pymethods]
impl DecodedArray {
    #[doc = help!("DecodedArray.shape")]
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    #[doc = help!("DecodedArray.dtype")]
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::dtype(py, &self.dtype)
    }

    #[doc = help!("DecodedArray.ndim")]
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    #[doc = help!("DecodedArray.size")]
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        shape::element_count(&self.shape).raise(py)
    }

    #[doc = help!("DecodedArray.nbytes")]
    #[getter]
    fn nbytes(&self) -> usize {
        self.nbytes
    }

    #[doc = help!("DecodedArray.device")]
    #[getter]
    fn device(&self) -> &'static str {
        "cpu"
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.shape.first() {
            Some(extent) => Ok(*extent as usize),
            None => Err(PyTypeError::new_err("a 0-d array has no len()")),
        }
    }

    #[doc = help!("DecodedArray.tolist")]
    fn tolist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        shown::values(slf)?.call_method0("tolist")
    }

    #[doc = help!("DecodedArray.arrow")]
    #[pyo3(
        signature = (*, layout = "tensor", bools = "bytes", strings = "large", dimension_names = None, **unknown),
        text_signature = "($self, *, layout=\"tensor\", bools=\"bytes\", strings=\"large\", dimension_names=None)"
    )]
    fn arrow<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument)] layout: &str,
        #[pyo3(from_py_with = argument)] bools: &str,
        #[pyo3(from_py_with = argument)] strings: &str,
        #[pyo3(from_py_with = argument)] dimension_names: Option<Vec<Option<String>>>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        known(slf.py(), "DecodedArray.arrow", unknown)?;
        let request = RequestedForm { form: arrow::form(layout, bools, strings)?, dimension_names };
        import(slf.py(), "pyarrow")?.call_method1("array", (ArrowChoice::new(slf, request)?,))
    }

    #[doc = help!("DecodedArray.polars")]
    #[pyo3(
        signature = (*, layout = "tensor", bools = "bits", strings = "large", **unknown),
        text_signature = "($self, *, layout=\"tensor\", bools=\"bits\", strings=\"large\")"
    )]
    fn polars<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = argument)] layout: &str,
        #[pyo3(from_py_with = argument)] bools: &str,
        #[pyo3(from_py_with = argument)] strings: &str,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        known(slf.py(), "DecodedArray.polars", unknown)?;
        let request = RequestedForm { form: arrow::form(layout, bools, strings)?, dimension_names: None };
        import(slf.py(), "polars")?.call_method1("Series", (ArrowChoice::new(slf, request)?,))
    }

    /// Compare element by element, as NumPy does.
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        operation: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = match operation {
            CompareOp::Lt => "lt",
            CompareOp::Le => "le",
            CompareOp::Eq => "eq",
            CompareOp::Ne => "ne",
            CompareOp::Gt => "gt",
            CompareOp::Ge => "ge",
        };
        import(slf.py(), "zarrow.arrays.comparison")?.call_method1("elementwise", (slf, other, name))
    }

    #[doc = help!("DecodedArray.equals")]
    fn equals<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        import(slf.py(), "zarrow.arrays.comparison")?.call_method1("equals", (slf, other))
    }

    #[doc = help!("DecodedArray.__reduce_ex__")]
    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: i64) -> PyResult<Bound<'py, PyAny>> {
        import(slf.py(), "zarrow.interchange.pickling")?.call_method1("reduce", (slf, protocol))
    }

    #[doc = help!("DecodedArray.__copy__")]
    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        import(slf.py(), "zarrow.interchange.pickling")?.call_method1("copied", (slf,))
    }

    #[doc = help!("DecodedArray.__deepcopy__")]
    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        // The caller keeps the memo of copied objects.
        let _ = memo;
        Self::__copy__(slf)
    }

    #[doc = help!("DecodedArray.__arrow_c_schema__")]
    fn __arrow_c_schema__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyCapsule>> {
        arrow::schema(slf)
    }
}
