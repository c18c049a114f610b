//! What is written: any array or scalar as elements of the stored type, in the memory where they lie.
//!
//! 1. A NumPy array of a type that has a size says where its elements are, in whatever byte order and at whatever distance;
//!    structures that are not in the machine's order are copied.
//! 2. NumPy's scalars count as Python's, whose value decides; None and `numpy.ma.masked` are missing elements.
//! 3. Everything else comes in as `asarray` takes it.
//! 4. Elements of another type are cast by NumPy where it calls that safe. Where elements are missing, the stored type has
//!    to be an optional one.

use crate::data_type;
use crate::error::{Raise, no_missing, unsafe_cast};
use crate::import;
use crate::numpy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyList, PyTuple};
use zarrow::store::Durability;
use zarrow::{Result, Values};
use zarrow_array::import::{Imported, element::Element};
use zarrow_array::{Buffer, DataType, Mask, SharedTensor};

/// Elements to be written, and what keeps their memory alive.
pub enum Written {
    /// Memory of a NumPy array.
    Foreign(Foreign),
    /// One of the four layouts.
    Imported(Imported),
}

/// Where the elements of a NumPy array lie.
pub struct Foreign {
    place: Place,
    element: Element,
    _owner: Py<PyAny>,
}

/// Elements some bytes apart.
struct Place {
    pointer: *const u8,
    shape: Vec<u64>,
    strides: Vec<isize>,
}

// SAFETY: a place gives no access by itself; the owner keeps the memory, which any thread may read.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Written {
    /// `object` as elements of `data_type`.
    pub fn new(object: &Bound<'_, PyAny>, data_type: &DataType) -> PyResult<Written> {
        let own = data_type.without_optional();
        let is_optional = data_type.optional_depth() > 0;
        let written = Self::any(object, own, is_optional)?;
        if !is_optional && written.missing_count() > 0 {
            return Err(no_missing(object.py(), data_type));
        }
        match written.dtype() == own {
            true => Ok(written.without_useless_mask(is_optional)),
            false => Ok(written.cast(object, own)?.without_useless_mask(is_optional)),
        }
    }

    fn any(object: &Bound<'_, PyAny>, own: &DataType, is_optional: bool) -> PyResult<Written> {
        let py = object.py();
        if numpy::is_exact_array(object)?
            && let Some(element) = data_type::of_numpy(&object.getattr("dtype")?)?
        {
            if element.is_swapped && matches!(element.dtype, DataType::Struct(_)) {
                // Which of the fields are the other way round NumPy alone knows.
                let native = object.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
                return Self::any(&object.call_method1("astype", (native,))?, own, is_optional);
            }
            return Ok(Written::Foreign(Foreign::new(object, element)?));
        }
        if numpy::is_scalar(object)? && "biufc".contains(kind(object)?) && !own.is_variable() {
            return Self::any(&object.call_method0("item")?, own, is_optional);
        }
        if object.is_none() && !is_optional {
            return Err(no_missing(py, own));
        }
        if is_optional && !own.is_variable() {
            if object.is(&numpy::module(py)?.getattr("ma")?.getattr("masked")?) {
                return Self::any(py.None().bind(py), own, is_optional);
            }
            if let Some(masked) = with_none(object, own)? {
                return Ok(Written::Imported(masked));
            }
        }
        if own.is_variable() && numpy::is_array(object)? && kind(object)? == 'O' {
            // The type of no object at all is the one that is asked for.
            return Ok(Written::Imported(import::text::array(object, Some(own))?));
        }
        Ok(Written::Imported(import::array(object, Some(own), None)?))
    }

    /// The elements as `own`, where NumPy calls that safe.
    fn cast(self, object: &Bound<'_, PyAny>, own: &DataType) -> PyResult<Written> {
        let py = object.py();
        let numpy = numpy::module(py)?;
        let refused = || unsafe_cast(py, &self.dtype().to_string(), own);
        let array = match self.is_masked() {
            true => numpy.getattr("ma")?.call_method1("asanyarray", (object,))?,
            false => numpy.call_method1("asarray", (object,))?,
        };
        let (found, wanted) = (array.getattr("dtype")?, numpy::dtype(py, own)?);
        let by_length = match own {
            // Text and bytes of one length are text and bytes of any.
            DataType::String => matches!(self.dtype(), DataType::FixedLengthUtf32 { .. }),
            DataType::Bytes => matches!(self.dtype(), DataType::NullTerminatedBytes { .. }),
            _ if self.dtype().is_variable() => return Err(refused()),
            _ => false,
        };
        if by_length {
            let objects = array.call_method1("astype", ("O",))?;
            return Ok(Written::Imported(import::array(&objects, Some(own), None)?));
        }
        if own.is_variable()
            || !numpy.call_method1("can_cast", (found, &wanted, "safe"))?.extract::<bool>()?
        {
            return Err(refused());
        }
        let cast = array.call_method1("astype", (wanted,))?;
        // NumPy has one dtype for a complex number that is none of its own and for the structure of its parts.
        Ok(match Self::any(&cast, own, false)? {
            Written::Foreign(foreign) if foreign.element.dtype.item_size() == own.item_size() => {
                Written::Foreign(foreign.named(own))
            }
            Written::Imported(Imported::MaskedTensor(tensor, mask)) => {
                let named = tensor.cast(own.clone()).raise(py)?;
                Written::Imported(Imported::MaskedTensor(named, mask))
            }
            other => other,
        })
    }

    fn dtype(&self) -> &DataType {
        match self {
            Written::Foreign(foreign) => &foreign.element.dtype,
            Written::Imported(imported) => imported.dtype(),
        }
    }

    fn is_masked(&self) -> bool {
        matches!(self, Written::Imported(Imported::MaskedTensor(..) | Imported::MaskedVariable(_)))
    }

    fn missing_count(&self) -> usize {
        match self {
            Written::Imported(Imported::MaskedTensor(_, mask)) => mask.missing_count(),
            Written::Imported(Imported::MaskedVariable(masked)) => masked.mask().missing_count(),
            _ => 0,
        }
    }

    /// Without a mask that masks nothing, where the stored type has none.
    fn without_useless_mask(self, is_optional: bool) -> Written {
        match self {
            Written::Imported(Imported::MaskedTensor(tensor, _)) if !is_optional => {
                Written::Imported(Imported::Tensor(tensor))
            }
            Written::Imported(Imported::MaskedVariable(masked)) if !is_optional => {
                Written::Imported(Imported::Variable(masked.data().clone()))
            }
            other => other,
        }
    }

    /// The elements.
    ///
    /// # Safety
    /// As long as the values are used, nobody writes to the memory of the array that they were made of.
    pub unsafe fn values(&self) -> Result<Values<'_>> {
        // SAFETY: the caller's contract; the owner keeps the memory.
        unsafe {
            match self {
                Written::Foreign(Foreign { place, element, .. }) => {
                    place.values(&element.dtype, element.is_swapped)
                }
                Written::Imported(Imported::Tensor(tensor)) => of_tensor(tensor),
                Written::Imported(Imported::MaskedTensor(tensor, mask)) => {
                    of_tensor(tensor)?.with_levels(mask)
                }
                Written::Imported(Imported::Variable(variable)) => Ok(Values::variable(variable)),
                Written::Imported(Imported::MaskedVariable(masked)) => {
                    Values::variable(masked.data()).with_levels(masked.mask())
                }
            }
        }
    }
}

fn kind(object: &Bound<'_, PyAny>) -> PyResult<char> {
    object.getattr("dtype")?.getattr("kind")?.extract()
}

/// The masked layout of a Python object that has None in it, `None` where it has not.
///
/// What is there has the type that it has without None: some element of it, zero where there is none, stands for those
/// that are missing.
fn with_none(object: &Bound<'_, PyAny>, own: &DataType) -> PyResult<Option<Imported>> {
    let py = object.py();
    let is_objects = numpy::is_array(object)? && kind(object)? == 'O';
    if !(object.is_none()
        || is_objects
        || object.is_instance_of::<PyList>()
        || object.is_instance_of::<PyTuple>())
    {
        return Ok(None);
    }
    let numpy = numpy::module(py)?;
    let objects = numpy.call_method1("asarray", (object, "O"))?;
    let elements = objects.call_method0("ravel")?.call_method0("tolist")?;
    let elements = elements.cast_into::<PyList>()?;
    let Some(first) = elements.iter().position(|element| element.is_none()) else { return Ok(None) };
    let mut missing = Buffer::zeroed(elements.len()).raise(py)?;
    let present = elements.iter().find(|element| !element.is_none());
    let shape = objects.getattr("shape")?;
    let Some(present) = present else {
        missing.fill(1);
        let zeros = numpy.call_method1("zeros", (shape, numpy::dtype(py, own)?))?;
        return masked(py, import::array(&zeros, Some(own), None)?, missing, own).map(Some);
    };
    for at in first..elements.len() {
        if elements.get_item(at)?.is_none() {
            missing[at] = 1;
            elements.set_item(at, &present)?;
        }
    }
    // One by one, since elements may be tuples, the values of structures.
    let filled = numpy.call_method1("empty", (elements.len(), "O"))?;
    for (at, element) in elements.iter().enumerate() {
        filled.set_item(at, element)?;
    }
    let filled = filled.call_method1("reshape", (shape,))?.call_method0("tolist")?;
    masked(py, import::text::from_python(&filled, Some(own))?, missing, own).map(Some)
}

fn masked(py: Python<'_>, elements: Imported, missing: Buffer, own: &DataType) -> PyResult<Imported> {
    match elements {
        Imported::Tensor(tensor) if tensor.size() == missing.len() => {
            Ok(Imported::MaskedTensor(tensor, Mask::new(vec![missing]).raise(py)?))
        }
        // Elements that became something else fit no mask of theirs: text for one.
        other => Err(unsafe_cast(py, &other.dtype().to_string(), own)),
    }
}

/// # Safety
/// As [`Written::values`].
unsafe fn of_tensor(tensor: &SharedTensor) -> Result<Values<'_>> {
    let item_size = tensor.item_size() as isize;
    let place = Place {
        pointer: tensor.pointer().as_ptr(),
        shape: tensor.shape().iter().map(|extent| extent.unsigned_abs()).collect(),
        strides: tensor.strides().iter().map(|stride| *stride as isize * item_size).collect(),
    };
    // SAFETY: the caller's contract; the tensor keeps its memory.
    unsafe { place.values(tensor.dtype(), false) }
}

impl Foreign {
    fn new(array: &Bound<'_, PyAny>, element: Element) -> PyResult<Foreign> {
        let strides: Vec<isize> = array.getattr("strides")?.extract()?;
        let shape: Vec<u64> = array.getattr("shape")?.extract()?;
        let address: usize = array.getattr("ctypes")?.getattr("data")?.extract()?;
        if strides.len() != shape.len() {
            return Err(PyValueError::new_err("the array has not a stride for each axis"));
        }
        let place = Place { pointer: std::ptr::with_exposed_provenance(address), shape, strides };
        Ok(Foreign { place, element, _owner: array.clone().unbind() })
    }

    /// The same elements by the name of a type that NumPy has the same dtype for.
    fn named(mut self, dtype: &DataType) -> Foreign {
        self.element.dtype = dtype.clone();
        self
    }
}

impl Place {
    /// # Safety
    /// The elements can be read, and nobody writes to them, as long as the values are used.
    unsafe fn values<'a>(&self, dtype: &DataType, swapped: bool) -> Result<Values<'a>> {
        let item_size = dtype.item_size().unwrap_or(0);
        let (mut low, mut high) = (0isize, 0isize);
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            // An array in memory has no element that an address does not reach.
            let reach =
                stride.saturating_mul(isize::try_from(extent.saturating_sub(1)).unwrap_or(isize::MAX));
            (low, high) = (low.saturating_add(reach.min(0)), high.saturating_add(reach.max(0)));
        }
        let nbytes = if self.shape.contains(&0) { 0 } else { high.saturating_sub(low) as usize + item_size };
        let place = (self.pointer.wrapping_offset(low), nbytes, low.unsigned_abs());
        // SAFETY: the caller's contract, for the range from the lowest element to the highest.
        unsafe { Values::strided(place, dtype.clone(), &self.shape, &self.strides, swapped) }
    }
}

/// How Python names each durability.
const DURABILITIES: [(&str, Durability); 3] =
    [("none", Durability::None), ("file", Durability::File), ("full", Durability::Full)];

/// The durability that `name` names.
pub fn durability(name: &str) -> PyResult<Durability> {
    DURABILITIES.iter().find(|(own, _)| *own == name).map(|(_, durability)| *durability).ok_or_else(|| {
        PyValueError::new_err(format!("durability is {name:?}, not \"none\", \"file\" or \"full\""))
    })
}

/// The name of a durability.
pub fn durability_name(durability: Durability) -> Option<&'static str> {
    DURABILITIES.iter().find(|(_, own)| *own == durability).map(|(name, _)| *name)
}
