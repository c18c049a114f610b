//! Values to write: any array or scalar, converted to the stored type, without a copy if possible.
//!
//! 1. A NumPy array of a fixed-size type is used in place, with any byte order and any strides; non-native-endian
//!    structures are copied.
//! 2. NumPy's scalars count as Python's: the value decides, not the type. None and `numpy.ma.masked` are missing
//!    elements.
//! 3. Everything else is imported as by `asarray`; memory on a GPU is copied to the host first.
//! 4. Elements of another type are cast if `casting` and `zarrow.arrays.casting` allow it. Integers and floats are cast
//!    while each chunk is written, other types by NumPy beforehand, as a copy.
//! 5. Missing elements need an optional stored type, or an attribute `_FillValue` of the array with the value to
//!    store for them.

use crate::device::write::on_host;
use crate::export::data_type;
use crate::export::numpy;
use crate::import;
use crate::layout::masked_tensor::MaskedTensor;
use crate::layout::tensor::Tensor;
use crate::python::error::{Raise, no_missing, unsafe_cast};
use crate::python::importing;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use zarrow::metadata::ArrayMetadata;
use zarrow::store::Durability;
use zarrow::{MissingValues, Result, Values};
use zarrow_array::import::{Imported, element::Element};
use zarrow_array::{DataType, SharedTensor};

/// NumPy's casting rules.
const CASTINGS: [&str; 5] = ["no", "equiv", "safe", "same_kind", "unsafe"];

/// Default casting rule: that of NumPy's assignment, except for floats to integers.
pub const CASTING: &str = "same_kind";

/// Elements to write, and their type in the array.
pub struct ArrayInput {
    memory: Memory,
    /// Target type of a cast, if it differs from the type of the elements.
    cast_to: Option<DataType>,
}

/// Elements and the owner of their memory.
enum Memory {
    /// Memory of a NumPy array.
    Foreign(Foreign),
    /// One of the four layouts.
    Imported(Imported),
}

/// Elements of a NumPy array.
pub struct Foreign {
    place: StridedMemory,
    element: Element,
    _owner: Py<PyAny>,
}

/// Strided memory.
struct StridedMemory {
    pointer: *const u8,
    shape: Vec<u64>,
    strides: Vec<isize>,
}

// SAFETY: the struct itself gives no access to the memory; the owner keeps it, and any thread may read it.
unsafe impl Send for StridedMemory {}
// SAFETY: as above.
unsafe impl Sync for StridedMemory {}

impl ArrayInput {
    /// Converts `object` to elements of `data_type`, cast as `casting` allows. The attribute `_FillValue` or
    /// `missing_value` in the array's `metadata` is the value stored for missing elements.
    pub fn new(
        object: &Bound<'_, PyAny>,
        data_type: &DataType,
        casting: &str,
        metadata: Option<&ArrayMetadata>,
    ) -> PyResult<ArrayInput> {
        if !CASTINGS.contains(&casting) {
            let known = CASTINGS.map(|name| format!("{name:?}")).join(", ");
            return Err(PyValueError::new_err(format!("casting is {casting:?}, expected one of {known}")));
        }
        let own = data_type.without_optional();
        let (py, object) = (object.py(), &on_host(object)?);
        let is_optional = data_type.optional_depth() > 0;
        let names = ["_FillValue", "missing_value"];
        let named =
            metadata.filter(|metadata| names.iter().any(|name| metadata.attributes.get(*name).is_some()));
        let mut memory = Memory::from_python(object, own, is_optional || named.is_some())?;
        if !is_optional && memory.missing_count() > 0 {
            let values = named.map(MissingValues::cf).transpose().raise(py)?;
            let Some(fill) = values.as_ref().and_then(|values| values.values().first()) else {
                return Err(no_missing(py, data_type));
            };
            memory = memory.filled(py, fill, own)?;
        }
        if casting == "no" && memory.is_swapped() {
            let found = format!("byte-swapped {}", memory.dtype());
            return Err(unsafe_cast(py, &found, own, casting));
        }
        let input = match memory.dtype() == own {
            true => ArrayInput { memory, cast_to: None },
            false => memory.cast(object, own, casting)?,
        };
        Ok(ArrayInput { memory: input.memory.without_useless_mask(is_optional), ..input })
    }

    /// Returns the elements.
    ///
    /// # Safety
    /// The source array's memory must not be written to while the values are used.
    pub unsafe fn values(&self) -> Result<Values<'_>> {
        // SAFETY: the caller's contract; the owner keeps the memory.
        let values = unsafe { self.memory.values() }?;
        match &self.cast_to {
            Some(dtype) => values.cast(dtype),
            None => Ok(values),
        }
    }
}

impl Memory {
    fn from_python(object: &Bound<'_, PyAny>, own: &DataType, is_optional: bool) -> PyResult<Memory> {
        let py = object.py();
        if numpy::is_exact_array(object)?
            && let Some(element) = data_type::from_numpy(&object.getattr("dtype")?)?
        {
            if element.is_swapped && matches!(element.dtype, DataType::Struct(_)) {
                // Only NumPy knows which fields are byte-swapped.
                let native = object.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
                return Self::from_python(&object.call_method1("astype", (native,))?, own, is_optional);
            }
            return Ok(Memory::Foreign(Foreign::new(object, element)?));
        }
        if numpy::is_scalar(object)? && "biufc".contains(data_type::kind(object)?) && !own.is_variable() {
            return Self::from_python(&object.call_method0("item")?, own, is_optional);
        }
        if object.is_none() && !is_optional {
            return Err(no_missing(py, own));
        }
        if is_optional && !own.is_variable() {
            if object.is(&numpy::module(py)?.getattr("ma")?.getattr("masked")?) {
                return Self::from_python(py.None().bind(py), own, is_optional);
            }
            if let Some(masked) = import::sequence::masked(object, Some(own))? {
                return Ok(Memory::Imported(masked));
            }
        }
        if own.is_variable() && numpy::is_array(object)? && data_type::kind(object)? == 'O' {
            // An array without elements takes any type.
            return Ok(Memory::Imported(import::text::array(object, Some(own))?));
        }
        Ok(Memory::Imported(import::array(object, Some(own), None)?))
    }

    /// Casts the elements to `own`, if `casting` allows it (step 4).
    fn cast(self, object: &Bound<'_, PyAny>, own: &DataType, casting: &str) -> PyResult<ArrayInput> {
        let py = object.py();
        let refused = || unsafe_cast(py, &self.dtype().to_string(), own, casting);
        let array = self.numpy(object)?;
        let by_length = match own {
            // Fixed-length text and bytes convert to variable length.
            DataType::String => matches!(self.dtype(), DataType::FixedLengthUtf32 { .. }),
            DataType::Bytes => matches!(self.dtype(), DataType::NullTerminatedBytes { .. }),
            _ if self.dtype().is_variable() => {
                // In the other direction the longest element decides the length; the casting rules refuse
                // truncation.
                let kind = match (self.dtype(), own) {
                    (DataType::String, DataType::FixedLengthUtf32 { .. }) => "U",
                    (DataType::Bytes, DataType::NullTerminatedBytes { .. }) => "S",
                    _ => return Err(refused()),
                };
                let objects = array.call_method1("astype", ("O",))?;
                let array = objects.call_method1("astype", (kind,))?;
                return match Self::from_python(&array, own, false)? {
                    memory if memory.dtype() == own => Ok(ArrayInput { memory, cast_to: None }),
                    memory => memory.cast(&array, own, casting),
                };
            }
            _ => false,
        };
        if by_length {
            let objects = array.call_method1("astype", ("O",))?;
            let imported = import::array(&objects, Some(own), None)?;
            return Ok(ArrayInput { memory: Memory::Imported(imported), cast_to: None });
        }
        let (found, wanted) = (array.getattr("dtype")?, numpy::dtype(py, own)?);
        let rules = importing::import(py, "zarrow.arrays.casting")?;
        if own.is_variable()
            || !rules.call_method1("is_allowed", (&found, &wanted, casting))?.extract::<bool>()?
        {
            return Err(refused());
        }
        rules.call_method1("check", (&array, &wanted, casting))?;
        if Values::can_be_cast(self.dtype(), own) {
            return Ok(ArrayInput { memory: self, cast_to: Some(own.clone()) });
        }
        let cast = array.call_method1("astype", (wanted,))?;
        // NumPy has the same dtype for the structure of two parts and for complex numbers that it lacks.
        let memory = match Self::from_python(&cast, own, false)? {
            Memory::Foreign(foreign) if foreign.element.dtype.item_size() == own.item_size() => {
                Memory::Foreign(foreign.named(own))
            }
            Memory::Imported(Imported::MaskedTensor(tensor, mask)) => {
                let named = tensor.cast(own.clone()).raise(py)?;
                Memory::Imported(Imported::MaskedTensor(named, mask))
            }
            other => other,
        };
        Ok(ArrayInput { memory, cast_to: None })
    }

    /// Returns the elements as a NumPy array, without a copy if possible; masked if some are missing.
    fn numpy<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = object.py();
        match self {
            Memory::Imported(Imported::Tensor(tensor)) => numpy::view(&Tensor::create(py, tensor.clone())?),
            Memory::Imported(Imported::MaskedTensor(data, mask)) => {
                MaskedTensor::from_parts(py, data.clone(), mask.clone())?.call_method0("numpy")
            }
            _ => numpy::module(py)?.call_method1("asarray", (object,)),
        }
    }

    fn dtype(&self) -> &DataType {
        match self {
            Memory::Foreign(foreign) => &foreign.element.dtype,
            Memory::Imported(imported) => imported.dtype(),
        }
    }

    /// Returns whether the elements are not native-endian.
    fn is_swapped(&self) -> bool {
        matches!(self, Memory::Foreign(foreign) if foreign.element.is_swapped)
    }

    fn missing_count(&self) -> usize {
        match self {
            Memory::Imported(Imported::MaskedTensor(_, mask)) => mask.missing_count(),
            Memory::Imported(Imported::MaskedVariable(masked)) => masked.mask().missing_count(),
            _ => 0,
        }
    }

    /// Replaces missing elements by an element of type `own` (step 5).
    fn filled(self, py: Python<'_>, fill: &[u8], own: &DataType) -> PyResult<Memory> {
        let filled = match self {
            Memory::Imported(Imported::MaskedTensor(data, mask)) => {
                let value = PyBytes::new(py, fill);
                let value = numpy::module(py)?.call_method1("frombuffer", (value, numpy::dtype(py, own)?))?;
                let masked = MaskedTensor::from_parts(py, data, mask)?.call_method0("numpy")?;
                import::array(&masked.call_method1("filled", (value.get_item(0)?,))?, None, None)?
            }
            Memory::Imported(Imported::MaskedVariable(masked)) => {
                Imported::Variable(masked.filled(fill).raise(py)?)
            }
            other => return Ok(other),
        };
        Ok(Memory::Imported(filled))
    }

    /// Drops a mask without missing elements, unless the stored type is optional.
    fn without_useless_mask(self, is_optional: bool) -> Memory {
        match self {
            Memory::Imported(Imported::MaskedTensor(tensor, _)) if !is_optional => {
                Memory::Imported(Imported::Tensor(tensor))
            }
            Memory::Imported(Imported::MaskedVariable(masked)) if !is_optional => {
                Memory::Imported(Imported::Variable(masked.data().clone()))
            }
            other => other,
        }
    }

    /// Returns the elements.
    ///
    /// # Safety
    /// The source array's memory must not be written to while the values are used.
    unsafe fn values(&self) -> Result<Values<'_>> {
        // SAFETY: the caller's contract; the owner keeps the memory.
        unsafe {
            match self {
                Memory::Foreign(Foreign { place, element, .. }) => {
                    place.values(&element.dtype, element.is_swapped)
                }
                Memory::Imported(Imported::Tensor(tensor)) => tensor_values(tensor),
                Memory::Imported(Imported::MaskedTensor(tensor, mask)) => {
                    tensor_values(tensor)?.with_levels(mask)
                }
                Memory::Imported(Imported::Variable(variable)) => Ok(Values::variable(variable)),
                Memory::Imported(Imported::MaskedVariable(masked)) => {
                    Values::variable(masked.data()).with_levels(masked.mask())
                }
            }
        }
    }
}

/// # Safety
/// See [`ArrayInput::values`].
unsafe fn tensor_values(tensor: &SharedTensor) -> Result<Values<'_>> {
    let item_size = tensor.item_size() as isize;
    let place = StridedMemory {
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
            return Err(PyValueError::new_err("expected one stride per axis"));
        }
        let place = StridedMemory { pointer: std::ptr::with_exposed_provenance(address), shape, strides };
        Ok(Foreign { place, element, _owner: array.clone().unbind() })
    }

    /// Renames the type to another one with the same NumPy dtype.
    fn named(mut self, dtype: &DataType) -> Foreign {
        self.element.dtype = dtype.clone();
        self
    }
}

impl StridedMemory {
    /// # Safety
    /// The elements must be readable, and must not be written to while the values are used.
    unsafe fn values<'a>(&self, dtype: &DataType, swapped: bool) -> Result<Values<'a>> {
        let item_size = dtype.item_size().unwrap_or(0);
        let (mut low, mut high) = (0isize, 0isize);
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            // The offsets of an array in memory fit an address.
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

/// Options of a write.
#[derive(Clone, Copy)]
pub struct Writing<'a> {
    /// Overrides the array's durability.
    pub durability: Option<&'a str>,
    /// Whether to store chunks that only contain the fill value.
    pub write_empty_chunks: bool,
    /// Allowed casts.
    pub casting: &'a str,
}

impl Default for Writing<'_> {
    fn default() -> Self {
        Writing { durability: None, write_empty_chunks: false, casting: CASTING }
    }
}

/// Python's names of the durabilities.
const DURABILITIES: [(&str, Durability); 3] =
    [("none", Durability::None), ("file", Durability::File), ("full", Durability::Full)];

/// Parses a durability.
pub fn durability(name: &str) -> PyResult<Durability> {
    DURABILITIES.iter().find(|(own, _)| *own == name).map(|(_, durability)| *durability).ok_or_else(|| {
        PyValueError::new_err(format!("durability is {name:?}, expected \"none\", \"file\" or \"full\""))
    })
}

/// Returns the name of a durability.
pub fn durability_name(durability: Durability) -> Option<&'static str> {
    DURABILITIES.iter().find(|(_, own)| *own == durability).map(|(name, _)| *name)
}
