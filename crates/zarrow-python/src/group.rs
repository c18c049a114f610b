//! The class `Group`: a folder of arrays and groups, by name.

use crate::arrow_stream::ArrowStream;
use crate::categorical::Categorical;
use crate::current::Current;
use crate::decoded_array::wrap;
use crate::error::Raise;
use crate::importing::import;
use crate::index_array::{self, Indexing};
use crate::interrupt::interruptible;
use crate::open::node;
use crate::origin::{self, Origin, Reduced};
use crate::summary::Summary;
use crate::tree::{self, Tree};
use crate::{arrow, attributes, json, metadata, missing};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyDict, PyEllipsis, PyIterator, PyList, PySlice};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;
use std::sync::Arc;
use zarrow::anndata::{EncodedArray, EncodedValues};
use zarrow::arrow::TableOptions;
use zarrow::metadata::Attributes;
use zarrow::{ErrorKind, Existing, Node, visible};

/// A group of arrays and groups in a store.
#[pyclass(frozen, mapping, module = "zarrow")]
pub struct Group {
    group: Current<zarrow::Group>,
}

/// A name, and the array or group that it names.
fn named(name: String, member: Bound<'_, PyAny>) -> (String, Bound<'_, PyAny>) {
    (name, member)
}

impl Group {
    /// The Python side of `group`.
    pub fn new(group: zarrow::Group) -> Group {
        Group { group: Current::new(group) }
    }

    /// Changes the group, which this object stands for then as it is after it.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut zarrow::Group, &dyn Fn() -> bool) -> zarrow::Result<T> + Send,
    ) -> PyResult<T> {
        let mut group = (*self.inner()).clone();
        let result = interruptible(py, |interrupt| change(&mut group, interrupt));
        self.group.set_later(group, zarrow::Group::revision);
        result
    }

    /// The group as it is now.
    pub fn inner(&self) -> Arc<zarrow::Group> {
        self.group.get()
    }

    /// The group as it is after all changes that this process has made to consolidated metadata.
    fn latest(&self, py: Python<'_>) -> PyResult<Arc<zarrow::Group>> {
        let group = self.inner();
        match py.detach(|| group.changed()).raise(py)? {
            None => Ok(group),
            Some(changed) => {
                self.group.set_later(changed, zarrow::Group::revision);
                Ok(self.inner())
            }
        }
    }

    /// A list of what `of` makes of each member that is wanted, with its name.
    fn members<'py, T: IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        wanted: fn(&Node) -> bool,
        of: fn(String, Bound<'py, PyAny>) -> T,
    ) -> PyResult<Bound<'py, PyList>> {
        let members = PyList::empty(py);
        let group = self.latest(py)?;
        for (name, child) in py.detach(|| group.children()).raise(py)? {
            let child = child.raise(py)?;
            if wanted(&child) {
                members.append(of(name, node(py, child)?))?;
            }
        }
        Ok(members)
    }

    fn rendered(&self, py: Python<'_>, depth: Option<usize>) -> PyResult<String> {
        let group = self.latest(py)?;
        py.detach(|| tree::render(&group, depth)).raise(py)
    }

    fn title(&self) -> String {
        format!("<zarrow.Group /{} in {}>", self.inner().path(), self.inner().store().name())
    }
}

#[pymethods]
impl Group {
    fn __getitem__<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let group = self.latest(py)?;
        node(py, py.detach(|| group.get(path)).raise(py)?)
    }

    /// Store an array under a name, with what is usual for it.
    fn __setitem__<'py>(slf: &Bound<'py, Self>, path: &str, array: &Bound<'py, PyAny>) -> PyResult<()> {
        import(slf.py(), "zarrow.creation")?.call_method1("_store", (slf, path, array)).map(drop)
    }

    fn __delitem__(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        self.change(py, |group, _| group.erase(path))
    }

    /// Create an array at a path below the group, and the groups between that are not there.
    #[pyo3(signature = (path, **options))]
    fn create_array<'py>(
        slf: &Bound<'py, Self>,
        path: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        import(slf.py(), "zarrow.creation")?.call_method("_create_array_in", (slf, path), options)
    }

    /// Create a group at a path below the group, as `zarrow.create_group` does.
    #[pyo3(signature = (path, *, attributes = None, overwrite = false))]
    fn create_group<'py>(
        slf: &Bound<'py, Self>,
        path: &str,
        attributes: Option<Bound<'py, PyDict>>,
        overwrite: bool,
    ) -> PyResult<Group> {
        let attributes =
            attributes.map_or(Ok(Attributes::default()), |attributes| json::attributes(&attributes))?;
        let existing = if overwrite { Existing::Erase } else { Existing::Refuse };
        let group = slf.get();
        group.change(slf.py(), |group, _| group.create_group(path, attributes, existing)).map(Group::new)
    }

    /// Give the group at a path below, which is created where it is not there.
    fn require_group<'py>(slf: &Bound<'py, Self>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        if !slf.get().__contains__(py, path)? {
            match Self::create_group(slf, path, None, false) {
                Ok(group) => return Ok(Bound::new(py, group)?.into_any()),
                // Another has created it since.
                Err(_) if slf.get().__contains__(py, path)? => {}
                Err(error) => return Err(error),
            }
        }
        let found = slf.get().__getitem__(py, path)?;
        match found.is_instance_of::<Group>() {
            true => Ok(found),
            false => Err(crate::error::node_type(py, format!("{path:?} is an array, not a group"))),
        }
    }

    /// Copy the metadata of everything below the group into the group's own.
    fn consolidate_metadata(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |group, _| group.consolidate_metadata())
    }

    /// Read the metadata again, so that the group is as the store has it now.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |group, _| group.refresh())
    }

    /// Give the Array or Group at a path below, or `default` where there is none.
    #[pyo3(signature = (path, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if self.__contains__(py, path)? { self.__getitem__(py, path).map(Some) } else { Ok(default) }
    }

    /// The names that a notebook offers between brackets.
    fn _ipython_key_completions_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.keys(py)
    }

    /// Pickle: by its store, path and options; loading opens it anew.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let group = self.inner();
        origin::reduce(py, group.store(), group.path(), group.options())
    }

    /// Give another handle of the same group.
    fn __copy__(&self) -> Group {
        Group::new((*self.inner()).clone())
    }

    /// Whether both are the group at one path of one store.
    fn __richcmp__(slf: &Bound<'_, Group>, other: &Bound<'_, Group>, operation: CompareOp) -> Py<PyAny> {
        let (group, other) = (slf.get().inner(), other.get().inner());
        let own = Origin::new(group.store(), group.path());
        own.compare(slf.py(), &Origin::new(other.store(), other.path()), operation)
    }

    fn __hash__(&self) -> u64 {
        let group = self.inner();
        let mut hasher = DefaultHasher::new();
        Origin::new(group.store(), group.path()).hash(&mut hasher);
        hasher.finish()
    }

    fn __contains__(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        let group = self.latest(py)?;
        match py.detach(|| group.get(path)) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::WrongNode { .. }) => {
                Ok(false)
            }
            Err(error) => Err(error).raise(py),
        }
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.keys(py)?.len())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }

    /// List the names of the members, sorted.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let group = self.latest(py)?;
        let names = PyList::empty(py);
        for (name, _) in py.detach(|| group.children()).raise(py)? {
            names.append(name)?;
        }
        Ok(names)
    }

    /// List the members, sorted by name.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.members(py, |_| true, |_, member| member)
    }

    /// List the members with their names, sorted.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.members(py, |_| true, named)
    }

    /// List the arrays with their names, sorted.
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.members(py, |child| matches!(child, Node::Array(_)), named)
    }

    /// List the groups with their names, sorted.
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.members(py, |child| matches!(child, Node::Group(_)), named)
    }

    /// Read the array that the group stands for, as AnnData writes nullable and categorical ones.
    #[pyo3(signature = (selection = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        selection: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let group = self.latest(py)?;
        let place = |error: zarrow::Error| error.in_array(group.store().name(), group.path());
        let Some(array) = py.detach(|| EncodedArray::of_group(&group)).raise(py)? else {
            let kind = ErrorKind::WrongNode {
                expected: "an array, or a group that stands for one",
                found: "a group",
            };
            return Err(place(kind.into())).raise(py);
        };
        let index = selection.unwrap_or_else(|| PyEllipsis::get(py).to_owned().into_any());
        let selection =
            index_array::of_shape(array.shape(), &index, Indexing::Plain)?.map_err(place).raise(py)?;
        match interruptible(py, |interrupt| array.read(&selection, interrupt))? {
            EncodedValues::Masked(masked) => wrap(py, masked),
            EncodedValues::Categorical { codes, categories, ordered } => {
                Ok(Categorical::create(py, codes, categories, ordered)?.into_any())
            }
        }
    }

    /// Give the arrays of the group as a table that Arrow libraries read, in bounded memory.
    #[pyo3(signature = (columns = None, *, rows = None, layout = "tensor", bools = "bits", strings = "large",
                        mask = None, batch_rows = None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn to_arrow(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        rows: Option<Bound<'_, PySlice>>,
        layout: &str,
        bools: &str,
        strings: &str,
        mask: Option<&str>,
        batch_rows: Option<NonZeroU64>,
    ) -> PyResult<ArrowStream> {
        let options = TableOptions {
            form: arrow::form(layout, bools, strings)?,
            mask: missing::choice(mask)?,
            rows: None,
            batch_rows,
        };
        let group = self.latest(py)?;
        let table = py.detach(|| group.table(columns.as_deref(), options)).raise(py)?;
        ArrowStream::new(table, rows)
    }

    /// The attributes: a mapping that reads as a dict does, and stores what is changed.
    #[getter]
    fn attrs<'py>(slf: &Bound<'py, Group>) -> PyResult<Bound<'py, PyAny>> {
        attributes::live(slf.as_any())
    }

    /// The attributes as this object knows them, as a new dict.
    fn _attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::of_attributes(py, self.latest(py)?.attributes())
    }

    /// Change the attributes, and know them as they are stored then.
    fn _change_attributes(&self, how: &str, attributes: &Bound<'_, PyDict>) -> PyResult<()> {
        let change = attributes::change(how, attributes)?;
        self.change(attributes.py(), |group, _| group.change_attributes(&change))
    }

    /// The path in the store, without a slash before it; "" is the root.
    #[getter]
    fn path(&self) -> String {
        self.inner().path().to_owned()
    }

    /// The path in the store, with a slash before it.
    #[getter]
    fn name(&self) -> String {
        format!("/{}", self.inner().path())
    }

    /// The store, as it calls itself.
    #[getter]
    fn store(&self) -> String {
        self.inner().store().name().to_owned()
    }

    /// The version of the Zarr format: 2 or 3.
    #[getter]
    fn zarr_format(&self) -> u8 {
        metadata::version(self.inner().zarr_format())
    }

    /// Draw what is below the group, as a tree to print; depth limits the levels.
    #[pyo3(signature = (depth = None))]
    fn tree(&self, py: Python<'_>, depth: Option<usize>) -> PyResult<Tree> {
        Ok(Tree::new(self.rendered(py, depth)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("{}\n{}", visible(&self.title()), self.rendered(py, Some(1))?))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(Summary::new(self.title()).html(&self.rendered(py, Some(1))?))
    }
}
