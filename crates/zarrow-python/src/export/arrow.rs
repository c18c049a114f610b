//! The four layouts as Arrow arrays in capsules, in the form requested by a caller or a consumer.
//!
//! Source: Arrow PyCapsule interface. A requested schema is only a preference: unsupported requests get the default
//! form.

use crate::layout::decoded_array::DecodedArray;
use crate::layout::masked_tensor::MaskedTensor;
use crate::layout::masked_variable::MaskedVariable;
use crate::layout::tensor::Tensor;
use crate::layout::variable::Variable;
use crate::python::capsule;
use crate::python::error::{Raise, exchange};
use crate::python::fast_method::{FastMethod, Names, Values};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use std::ffi::CStr;
use zarrow_array::export::arrow::{self, ArrowField, ArrowForm, ArrowPair, BoolForm, RowForm, TextForm};
use zarrow_array::export::arrow_abi::{ArrayNode, ArrowSchema, SchemaNode};

/// The type and the memory in two capsules.
pub type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

/// Parses the keywords `layout`, `bools` and `strings`.
pub fn form(layout: &str, bools: &str, strings: &str) -> PyResult<ArrowForm> {
    let refused = |name: &str, value: &str, known: &str| {
        Err(PyValueError::new_err(format!("{name} is {value:?}, expected one of {known}")))
    };
    Ok(ArrowForm {
        rows: match layout {
            "tensor" => RowForm::Tensor,
            "nested" => RowForm::Nested,
            "flat" => RowForm::Flat,
            _ => return refused("layout", layout, "'tensor', 'nested' and 'flat'"),
        },
        bools: match bools {
            "bytes" => BoolForm::Bytes,
            "bits" => BoolForm::Bits,
            _ => return refused("bools", bools, "'bytes' and 'bits'"),
        },
        text: match strings {
            "large" => TextForm::Large,
            "small" => TextForm::Small,
            "views" => TextForm::Views,
            _ => return refused("strings", strings, "'large', 'small' and 'views'"),
        },
    })
}

/// Returns the schema requested by a consumer.
///
/// The consumer keeps its capsule alive during the call, which bounds the lifetime of the reference.
pub fn requested<'a>(schema: Option<&'a Bound<'_, PyAny>>) -> PyResult<Option<&'a ArrowSchema>> {
    let Some(schema) = schema else { return Ok(None) };
    let refused = || PyTypeError::new_err("requested_schema: expected an \"arrow_schema\" capsule, or None");
    let capsule = schema.cast::<PyCapsule>().map_err(|_| refused())?;
    Ok(Some(capsule::borrow_schema(capsule).ok_or_else(refused)?))
}

/// Form of an export: `form`, unless a consumer's schema requests another.
#[derive(Clone, Default)]
pub struct RequestedForm {
    /// Default form.
    pub form: ArrowForm,
    /// Dimension names.
    pub dimension_names: Option<Vec<Option<String>>>,
}

impl RequestedForm {
    /// Returns the form requested by a consumer.
    pub fn from_consumer(schema: Option<&Bound<'_, PyAny>>) -> PyResult<RequestedForm> {
        RequestedForm::default().requested(schema)
    }

    fn requested(&self, schema: Option<&Bound<'_, PyAny>>) -> PyResult<RequestedForm> {
        let form = requested(schema)?.map_or(self.form, |schema| self.form.requested(schema));
        Ok(RequestedForm { form, ..self.clone() })
    }

    fn names(&self) -> Option<&[Option<String>]> {
        self.dimension_names.as_deref()
    }
}

/// Exports a decoded array to Arrow's two structs.
#[inline]
fn pair(array: &Bound<'_, DecodedArray>, request: &RequestedForm) -> PyResult<ArrowPair> {
    let py = array.py();
    capsule::check_axes(py, array.get().extents().len())?;
    let exported = if let Ok(tensor) = array.cast::<Tensor>() {
        arrow::tensor(tensor.get().shared(), None, request.form, request.names())
    } else if let Ok(variable) = array.cast::<Variable>() {
        arrow::variable(variable.get().inner(), None, request.form)
    } else if let Ok(masked) = array.cast::<MaskedTensor>() {
        let (data, mask) = masked.get().parts();
        arrow::tensor(data, Some(mask), request.form, request.names())
    } else if let Ok(masked) = array.cast::<MaskedVariable>() {
        let masked = masked.get().inner();
        arrow::variable(masked.data(), Some(masked.mask()), request.form)
    } else {
        return Err(PyTypeError::new_err("expected a Tensor, Variable, MaskedTensor or MaskedVariable"));
    };
    exported.raise(py)
}

/// Exports an unmasked array of strings or numbers as a child of another array.
pub fn nodes(array: &Bound<'_, DecodedArray>, form: ArrowForm) -> PyResult<(SchemaNode, ArrayNode)> {
    let py = array.py();
    let extents: Vec<i64> = array.get().extents().iter().map(|extent| *extent as i64).collect();
    let field =
        |dtype| ArrowField { dtype, shape: &extents, order: None, dimension_names: None, form }.schema();
    if let Ok(variable) = array.cast::<Variable>() {
        let variable = variable.get().inner();
        let memory = arrow::variable_memory(variable, None, form);
        return Ok((field(variable.dtype()).raise(py)?, memory.raise(py)?));
    }
    let tensor = array.cast::<Tensor>()?.get().shared();
    Ok((field(tensor.dtype()).raise(py)?, arrow::tensor_memory(tensor, None, form).raise(py)?))
}

/// Exports a decoded array in two capsules.
#[inline]
pub fn array<'py>(array: &Bound<'py, DecodedArray>, request: &RequestedForm) -> PyResult<Capsules<'py>> {
    capsule::arrow_array(array.py(), pair(array, request)?)
}

/// `DecodedArray.__arrow_c_array__`.
pub struct ArrowCArray;

impl FastMethod<1> for ArrowCArray {
    type Class = DecodedArray;
    const NAME: &'static CStr = c"__arrow_c_array__";
    const DOC: &'static str = concat!(
        "__arrow_c_array__($self, /, requested_schema=None)\n--\n\n",
        help!("DecodedArray.__arrow_c_array__"),
        "\0",
    );
    const PARAMETERS: [&'static str; 1] = ["requested_schema"];
    const POSITIONAL: usize = 1;

    fn names() -> &'static Names<1> {
        static NAMES: Names<1> = Names::new();
        &NAMES
    }

    fn answer<'py>(
        object: &Bound<'py, DecodedArray>,
        [schema]: Values<'_, 'py, 1>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (schema, memory) = array(object, &RequestedForm::from_consumer(schema.as_deref())?)?;
        Ok(PyTuple::new(object.py(), [schema, memory])?.into_any())
    }
}

/// Returns the Arrow type of a decoded array.
pub fn schema<'py>(array: &Bound<'py, DecodedArray>) -> PyResult<Bound<'py, PyCapsule>> {
    let (py, form) = (array.py(), ArrowForm::default());
    capsule::check_axes(py, array.get().extents().len())?;
    let schema = if let Ok(variable) = array.cast::<Variable>() {
        arrow::variable_schema(variable.get().inner(), form)
    } else if let Ok(masked) = array.cast::<MaskedVariable>() {
        arrow::variable_schema(masked.get().inner().data(), form)
    } else if let Ok(masked) = array.cast::<MaskedTensor>() {
        arrow::tensor_schema(masked.get().parts().0, form, None)
    } else {
        arrow::tensor_schema(array.cast::<Tensor>()?.get().shared(), form, None)
    };
    capsule::arrow_schema(py, schema.raise(py)?)
}

/// A decoded array that exports itself in a form chosen by the caller.
#[pyclass(frozen, module = "zarrow")]
pub struct ArrowChoice {
    array: Py<DecodedArray>,
    request: RequestedForm,
}

impl ArrowChoice {
    /// Creates the export of `array` in the form `request`.
    pub fn new(array: &Bound<'_, DecodedArray>, request: RequestedForm) -> PyResult<ArrowChoice> {
        let ndim = array.get().extents().len();
        if request.names().is_some_and(|names| names.len() != ndim) {
            let message = format!("expected one dimension name for each of the {ndim} axes, or None");
            return Err(exchange(array.py(), "dimension_names", message));
        }
        Ok(ArrowChoice { array: array.clone().unbind(), request })
    }
}

#[pymethods]
impl ArrowChoice {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        array(self.array.bind(py), &self.request.requested(requested_schema.as_ref())?)
    }
}
