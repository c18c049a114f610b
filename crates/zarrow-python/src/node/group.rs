//! The class `Group`: a folder of named arrays and groups.

use crate::export::arrow;
use crate::index::advanced::{self, Indexing};
use crate::layout::arrow_stream::ArrowStream;
use crate::layout::categorical::Categorical;
use crate::layout::decoded_array::wrap;
use crate::node::array::Array;
use crate::node::creation_options::existing;
use crate::node::current::Current;
use crate::node::encoded_group::{is_sparse, not_an_array, refuse_values};
use crate::node::group_iterator::{GroupLoops, Visited};
use crate::node::group_length::{GroupNames, UnbegunNames};
use crate::node::node_path::NodePath;
use crate::node::origin::{self, Origin, Reduced};
use crate::node::tree::{self, Tree};
use crate::node::{attributes, creation_options, missing};
use crate::python::argument::{argument, column_names, known, refused};
use crate::python::error::{Attempt, Raise, is_ordinary, warning};
use crate::python::importing::import;
use crate::python::interrupt::{changing, interruptible, waiting};
use crate::python::summary::Summary;
use crate::python::{json, summary};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyDict, PyEllipsis, PyList, PySlice};
use std::num::NonZeroU64;
use std::sync::Arc;
use zarrow::anndata::{EncodedArray, EncodedValues};
use zarrow::arrow::TableOptions;
use zarrow::metadata::Attributes;
use zarrow::{ErrorKind, ListedMembers, Members, Node, ZarrFormat, visible};
use zarrow_array::allocation::check_spare;

#[doc = help!("Group")]
#[pyclass(frozen, mapping, module = "zarrow")]
pub struct Group {
    group: Current<zarrow::Group>,
    visited: Visited,
    unbegun: UnbegunNames,
}

/// Returns the Python object of a node.
pub fn node(py: Python<'_>, node: Node) -> PyResult<Bound<'_, PyAny>> {
    Ok(match node {
        Node::Array(array) => {
            warn_of_null_fill(py, &array)?;
            Array::create(py, array)?.into_any()
        }
        Node::Group(group) => Bound::new(py, Group::new(group))?.into_any(),
    })
}

/// Warns about a null fill value in version 3, which leaves missing chunks undefined.
fn warn_of_null_fill(py: Python<'_>, array: &zarrow::Array) -> PyResult<()> {
    let metadata = array.metadata();
    if metadata.has_fill_value || metadata.zarr_format == ZarrFormat::V2 {
        return Ok(());
    }
    let message = format!(
        "{:?} in {} stores null as its fill value, which version 3 does not allow: missing chunks are undefined and \
         read as 0",
        format!("/{}", array.path()),
        array.store().name()
    );
    warning(py, &message)
}

/// Returns a pair of a name and its member.
fn named(name: String, member: Bound<'_, PyAny>) -> (String, Bound<'_, PyAny>) {
    (name, member)
}

/// Like [`Group::items`], for these children.
pub fn items_of(py: Python<'_>, children: Members) -> PyResult<Bound<'_, PyList>> {
    members_of(py, children, |_| true, named)
}

/// Returns a list with the result of `of` for each wanted child, see [`Group::members`].
fn members_of<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    children: Members,
    wanted: fn(&Node) -> bool,
    of: fn(String, Bound<'py, PyAny>) -> T,
) -> PyResult<Bound<'py, PyList>> {
    let members = PyList::empty(py);
    for (name, child) in children {
        match opened(py, &name, child)? {
            Some(child) if wanted(&child) => members.append(of(name, node(py, child)?))?,
            _ => {}
        }
    }
    Ok(members)
}

/// Returns a listed member, or `None` with a warning if it can never be opened, because its metadata are invalid or
/// unsupported. Any other error is raised, such as one of the store.
fn opened(py: Python<'_>, name: &str, child: zarrow::Result<Node>) -> PyResult<Option<Node>> {
    let is_left_out = child.as_ref().is_err_and(zarrow::Error::is_permanent);
    match child.raise(py) {
        // Ctrl-C may come while the exception is made.
        Err(error) if is_left_out && is_ordinary(py, &error) => {
            warning(py, &format!("{name:?} is left out: {}", error.value(py)))?;
            Ok(None)
        }
        child => child.map(Some),
    }
}

impl Group {
    /// Creates the Python object of `group`.
    pub fn new(group: zarrow::Group) -> Group {
        Group { group: Current::new(group), visited: Visited::default(), unbegun: UnbegunNames::default() }
    }

    /// Changes the group. Afterwards this object has the new state.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut zarrow::Group, &dyn Fn() -> bool) -> zarrow::Result<T> + Send,
    ) -> PyResult<T> {
        let mut group = (*self.inner()).clone();
        let result = changing(py, |interrupt| change(&mut group, interrupt));
        self.group.set_later(group, zarrow::Group::revision);
        result
    }

    /// Returns the current state of the group.
    pub fn inner(&self) -> Arc<zarrow::Group> {
        self.group.get()
    }

    /// Returns the group with all changes that this process has made to consolidated metadata.
    pub fn latest(&self, py: Python<'_>) -> PyResult<Arc<zarrow::Group>> {
        let group = self.inner();
        match waiting(py, || group.changed())? {
            None => Ok(group),
            Some(changed) => {
                self.group.set_later(changed, zarrow::Group::revision);
                Ok(self.inner())
            }
        }
    }

    /// Returns a list with the result of `of` for each wanted member and its name. Members with invalid or unsupported
    /// metadata are skipped with a warning.
    fn members<'py, T: IntoPyObject<'py>>(
        &self,
        py: Python<'py>,
        wanted: fn(&Node) -> bool,
        of: fn(String, Bound<'py, PyAny>) -> T,
    ) -> PyResult<Bound<'py, PyList>> {
        let group = self.latest(py)?;
        let children = waiting(py, || group.children())?;
        members_of(py, children, wanted, of)
    }

    fn member<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(visited) = self.visited.take(py, path)? {
            return node(py, visited);
        }
        let group = self.latest(py)?;
        node(py, waiting(py, || group.get_named(path))?)
    }

    /// Returns the member at `path`, which may be missing.
    fn find<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = match self.visited.take(py, path)? {
            Some(visited) => Some(visited),
            None => {
                let group = self.latest(py)?;
                waiting(py, || group.find(path))?
            }
        };
        found.map(|found| node(py, found)).transpose()
    }

    /// Returns the members' names. In a loop over the names of a remote group, a member takes no second request.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let group = self.latest(py)?;
        let listed = waiting(py, || group.listed())?;
        self.names_in(py, &group, listed)
    }

    fn names_in<'py>(
        &self,
        py: Python<'py>,
        group: &zarrow::Group,
        listed: ListedMembers,
    ) -> PyResult<Bound<'py, PyList>> {
        // `PyList::new` panics if there is no memory.
        let names = PyList::empty(py);
        for (at, name) in listed.names().iter().enumerate() {
            if at % 256 == 0 {
                check_spare().raise(py)?;
            }
            names.append(name)?;
        }
        if group.is_consolidated() || group.store().remote().is_none() {
            return Ok(names);
        }
        let loops = GroupLoops::new(listed, self.visited.clone());
        let names = import(py, "zarrow.groups.member_names")?.call_method1("MemberNames", (names, loops))?;
        Ok(names.cast_into::<PyList>()?)
    }

    fn rendered(&self, py: Python<'_>, depth: Option<usize>) -> PyResult<String> {
        let group = self.latest(py)?;
        waiting(py, || tree::render(&group, depth))
    }

    /// Draws the members, or the reason why they cannot be listed.
    fn members_drawn(&self, py: Python<'_>) -> PyResult<String> {
        let group = self.latest(py)?;
        waiting(py, || match tree::render_members(&group) {
            Err(error) if !matches!(error.kind(), ErrorKind::Interrupted) => {
                let (path, reason) = (visible(group.path()).to_string(), error.kind().to_string());
                Ok(format!("/{path}\nmembers unknown: {}", visible(&reason)))
            }
            drawn => drawn,
        })
    }

    fn summary(&self, py: Python<'_>) -> PyResult<Summary> {
        let group = self.latest(py)?;
        let summary = Summary::new(format!("<zarrow.Group /{} in {}>", group.path(), group.store().name()));
        let summary = match tree::multiscales(group.attributes()) {
            Some(levels) => summary.row("multiscales", levels),
            None => summary,
        };
        Ok(match group.attributes().is_empty() {
            true => summary,
            false => summary.row("attrs", summary::attributes(group.attributes())),
        })
    }
}

#[pymethods]
impl Group {
    fn __getitem__<'py>(&self, py: Python<'py>, path: NodePath) -> PyResult<Bound<'py, PyAny>> {
        self.member(py, &path)
    }

    #[doc = help!("Group.__setitem__")]
    fn __setitem__<'py>(slf: &Bound<'py, Self>, path: NodePath, array: &Bound<'py, PyAny>) -> PyResult<()> {
        import(slf.py(), "zarrow.api.saving")?.call_method1("_store", (slf, &*path, array)).map(drop)
    }

    fn __delitem__(slf: &Bound<'_, Group>, path: NodePath) -> PyResult<()> {
        let is_below = path.trim_matches('/').contains('/');
        if !is_below && !slf.get().inner().attributes().values().contains_key("column-order") {
            return slf.get()._erase(slf.py(), path);
        }
        import(slf.py(), "zarrow.groups.columns")?.call_method1("erase_member", (slf, &*path)).map(drop)
    }

    /// Erases the node at a path, and keeps its name in `column-order`.
    fn _erase(&self, py: Python<'_>, path: NodePath) -> PyResult<()> {
        self.change(py, |group, _| group.erase(&path))
    }

    #[doc = help!("Group.create_group")]
    #[pyo3(
        signature = (name, *, attributes = None, overwrite = false, **unknown),
        text_signature = "($self, name, *, attributes=None, overwrite=False)"
    )]
    fn create_group<'py>(
        slf: &Bound<'py, Self>,
        name: NodePath,
        attributes: Option<Bound<'py, PyAny>>,
        #[pyo3(from_py_with = argument)] overwrite: bool,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Group> {
        known(slf.py(), "Group.create_group", unknown)?;
        let attributes = match attributes {
            // Any mapping is converted to a dict.
            Some(given) => match slf.py().get_type::<PyDict>().call1((&given,)).attempt(slf.py())? {
                Some(mapping) => json::attributes(mapping.cast::<PyDict>()?)?,
                None => return Err(refused(&given, "attributes as a dict")),
            },
            None => Attributes::default(),
        };
        let existing = existing(overwrite);
        slf.get().change(slf.py(), |group, _| group.create_group(&name, attributes, existing)).map(Group::new)
    }

    #[doc = help!("Group.require_group")]
    #[pyo3(
        signature = (name, *, overwrite = false, **unknown),
        text_signature = "($self, name, *, overwrite=False)"
    )]
    fn require_group<'py>(
        slf: &Bound<'py, Self>,
        name: NodePath,
        #[pyo3(from_py_with = argument)] overwrite: bool,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        known(slf.py(), "Group.require_group", unknown)?;
        let (py, path) = (slf.py(), &*name);
        let mut found = if overwrite { None } else { slf.get().find(py, path)? };
        if found.is_none() {
            match slf
                .get()
                .change(py, |group, _| group.create_group(path, Attributes::default(), existing(overwrite)))
            {
                Ok(group) => return Ok(Bound::new(py, Group::new(group))?.into_any()),
                Err(error) if overwrite => return Err(error),
                // Another has created it since.
                Err(error) => found = Some(slf.get().find(py, path)?.ok_or(error)?),
            }
        }
        let Some(found) = found else { return slf.get().member(py, path) };
        match found.is_instance_of::<Group>() {
            true => Ok(found),
            false => {
                Err(crate::python::error::node_type(py, format!("{path:?} is an array, expected a group")))
            }
        }
    }

    #[doc = help!("Group.consolidate_metadata")]
    fn consolidate_metadata(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |group, _| group.consolidate_metadata())
    }

    #[doc = help!("Group.refresh")]
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |group, _| group.refresh())
    }

    #[doc = help!("Group.get")]
    #[pyo3(signature = (path, default = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        path: NodePath,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.find(py, &path)?.or(default))
    }

    /// Return the names that a notebook completes between brackets.
    fn _ipython_key_completions_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.keys(py)
    }

    #[doc = help!("Group.__reduce__")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let group = self.inner();
        origin::reduce(py, group.store(), group.path(), group.options())
    }

    #[doc = help!("Group.__copy__")]
    fn __copy__(&self) -> Group {
        Group::new((*self.inner()).clone())
    }

    /// Return whether both are the group at the same path of the same store.
    fn __richcmp__(slf: &Bound<'_, Group>, other: &Bound<'_, PyAny>, how: CompareOp) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Group>() else {
            refuse_values(&slf.get().inner(), other)?;
            return Ok(slf.py().NotImplemented());
        };
        let (group, other) = (slf.get().inner(), other.get().inner());
        let own = Origin::new(group.store(), group.path());
        Ok(own.compare(slf.py(), &Origin::new(other.store(), other.path()), how))
    }

    fn __hash__(&self) -> u64 {
        let group = self.inner();
        Origin::new(group.store(), group.path()).hash_value()
    }

    fn __contains__(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<bool> {
        // As in a dict, a key of another type is simply not in the group.
        let Ok(path) = path.extract::<NodePath>() else { return Ok(false) };
        let group = self.latest(py)?;
        waiting(py, || Ok(group.find(&path)?.is_some()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        if self.unbegun.is_any() {
            let names = self.names(py)?;
            self.unbegun.give(&names);
            return Ok(names.len());
        }
        let group = self.latest(py)?;
        waiting(py, || Ok(group.listed()?.names().len()))
    }

    fn __iter__(slf: &Bound<'_, Group>) -> GroupNames {
        slf.get().unbegun.iterate(slf.clone().into_any().unbind())
    }

    #[doc = help!("Group.keys")]
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.names(py)
    }

    /// Opens several members with one round of requests.
    fn _get_each<'py>(&self, py: Python<'py>, paths: Vec<String>) -> PyResult<Bound<'py, PyList>> {
        let group = self.latest(py)?;
        let nodes = waiting(py, || group.get_each_named(&paths))?;
        let found = PyList::empty(py);
        for opened in nodes {
            check_spare().raise(py)?;
            found.append(node(py, opened)?)?;
        }
        Ok(found)
    }

    /// Returns the names of the arrays, or of the groups.
    fn _keys_of<'py>(&self, py: Python<'py>, of_arrays: bool) -> PyResult<Bound<'py, PyList>> {
        let group = self.latest(py)?;
        let mut members = Vec::new();
        for (name, child) in waiting(py, || group.children())? {
            match opened(py, &name, child)? {
                Some(node) if matches!(node, Node::Array(_)) == of_arrays => members.push((name, node)),
                _ => {}
            }
        }
        let listed = waiting(py, || ListedMembers::new((*group).clone(), members))?;
        self.names_in(py, &group, listed)
    }

    #[doc = help!("Group.values")]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.members(py, |_| true, |_, member| member)
    }

    #[doc = help!("Group.items")]
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.members(py, |_| true, named)
    }

    #[doc = help!("Group.arrays")]
    #[pyo3(signature = (**unknown), text_signature = "($self)")]
    fn arrays<'py>(
        &self,
        py: Python<'py>,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyList>> {
        known(py, "Group.arrays", unknown)?;
        self.members(py, |child| matches!(child, Node::Array(_)), named)
    }

    #[doc = help!("Group.groups")]
    fn groups<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.members(py, |child| matches!(child, Node::Group(_)), named)
    }

    #[doc = help!("Group.read")]
    #[pyo3(signature = (selection = None))]
    fn read<'py>(
        slf: &Bound<'py, Group>,
        selection: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let group = slf.get().latest(py)?;
        if is_sparse(&group) {
            return import(py, "zarrow.anndata.sparse")?.call_method1("read", (slf, selection));
        }
        let place = |error: zarrow::Error| error.in_array(group.store().name(), group.path());
        let Some(array) = waiting(py, || EncodedArray::from_group(&group))? else {
            return Err(place(not_an_array(&group).into())).raise(py);
        };
        let index = selection.unwrap_or_else(|| PyEllipsis::get(py).to_owned().into_any());
        let selection =
            advanced::for_shape(array.shape(), &index, Indexing::Plain)?.map_err(place).raise(py)?;
        match interruptible(py, |interrupt| array.read(&selection, interrupt))? {
            EncodedValues::Masked(masked) => wrap(py, masked),
            EncodedValues::Categorical { codes, categories, ordered } => {
                Ok(Categorical::create(py, codes, categories, ordered)?.into_any())
            }
        }
    }

    #[doc = help!("Group.to_arrow")]
    #[pyo3(
        signature = (columns = None, *, rows = None, layout = "tensor", bools = "bits", strings = "large",
                     mask = None, batch_rows = None, **unknown),
        text_signature = "($self, columns=None, *, rows=None, layout=\"tensor\", bools=\"bits\", \
                          strings=\"large\", mask=None, batch_rows=None)"
    )]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn to_arrow(
        &self,
        py: Python<'_>,
        columns: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = argument)] rows: Option<Bound<'_, PySlice>>,
        #[pyo3(from_py_with = argument)] layout: &str,
        #[pyo3(from_py_with = argument)] bools: &str,
        #[pyo3(from_py_with = argument)] strings: &str,
        #[pyo3(from_py_with = argument)] mask: Option<&str>,
        #[pyo3(from_py_with = argument)] batch_rows: Option<NonZeroU64>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<ArrowStream> {
        known(py, "Group.to_arrow", unknown)?;
        let form = arrow::form(layout, bools, strings)?;
        let options = TableOptions::default().form(form).mask(missing::choice(mask)?).batch_rows(batch_rows);
        let group = self.latest(py)?;
        let columns = columns.as_ref().map(column_names).transpose()?;
        let table = waiting(py, || group.table(columns.as_deref(), options))?;
        ArrowStream::new(table, rows)
    }

    #[doc = help!("Group.attrs")]
    #[getter]
    fn attrs<'py>(slf: &Bound<'py, Group>) -> PyResult<Bound<'py, PyAny>> {
        attributes::live(slf.as_any())
    }

    #[setter(attrs)]
    fn set_attrs(slf: &Bound<'_, Self>, attributes: &Bound<'_, PyAny>) -> PyResult<()> {
        attributes::live(slf.as_any())?.call_method1("put", (attributes,)).map(drop)
    }

    /// Return this object's state of the attributes, as a new dict.
    fn _attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::from_attributes(py, self.latest(py)?.attributes())
    }

    /// Return whether the group is read-only.
    fn _is_read_only(&self) -> bool {
        self.inner().store().writer().is_none()
    }

    /// Return whether the store is remote.
    fn _is_remote(&self) -> bool {
        self.inner().store().remote().is_some()
    }

    /// Return the version of the document, 0 without a document; None in a remote store or one without versions.
    fn _document_version(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        if self._is_remote() { Ok(None) } else { waiting(py, || self.inner().document_version()) }
    }

    /// Return whether the metadata of everything below come from one document.
    fn _is_consolidated(&self) -> bool {
        self.inner().is_consolidated()
    }

    /// Return the same group, which lists its members even if their metadata are consolidated.
    fn _without_consolidated(&self) -> Group {
        Group::new(self.inner().without_consolidated())
    }

    /// Change the attributes, and update this object's state of them.
    fn _change_attributes(&self, how: &str, attributes: &Bound<'_, PyDict>) -> PyResult<()> {
        let change = attributes::change(how, attributes)?;
        self.change(attributes.py(), |group, _| group.change_attributes(&change))
    }

    #[doc = help!("Group.path")]
    #[getter]
    fn path(&self) -> String {
        self.inner().path().to_owned()
    }

    #[doc = help!("Group.name")]
    #[getter]
    fn name(&self) -> String {
        format!("/{}", self.inner().path())
    }

    #[doc = help!("Group.store")]
    #[getter]
    fn store(&self) -> String {
        self.inner().store().name().to_owned()
    }

    #[doc = help!("Group.zarr_format")]
    #[getter]
    fn zarr_format(&self) -> u8 {
        creation_options::version(self.inner().zarr_format())
    }

    #[doc = help!("Group.tree")]
    #[pyo3(signature = (level = None, **unknown), text_signature = "($self, level=None)")]
    fn tree(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument)] level: Option<usize>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Tree> {
        known(py, "Group.tree", unknown)?;
        Ok(Tree::new(self.rendered(py, level)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("{}\n{}", self.summary(py)?.text(), self.members_drawn(py)?))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.summary(py)?.html(&self.members_drawn(py)?))
    }
}
