//! Creates many nodes in a remote store, in batches of concurrent requests.
//!
//! 1. One batch reads the groups above, the documents of nodes that may be replaced or kept, and a list of the keys
//!    below the topmost nodes. If that list does not fit one answer, each node's names are listed.
//! 2. If nodes are replaced, their documents are deleted, and then everything else below them.
//! 3. Missing groups above come first, then the topmost nodes, by conditional puts: the second of two creators fails
//!    here, before it has put anything else. Then the other documents are put at once. Chunks
//!    follow when the documents of arrays with elements are stored; the others are awaited after the chunks. A killed
//!    process may leave nodes without a group above them, but the topmost node exists. If the topmost nodes are groups
//!    that may exist, all documents are put at once.
//! 4. Arrays with elements begin with an unfinished document (`unfinished`). Then all chunks of all arrays are put. One
//!    last batch has the documents of the arrays, and the attributes that groups get last. In version 2, documents of
//!    attributes are put one batch before their nodes, and the arrays' documents before the chunks.
//! 5. At the end, consolidated metadata are written: of the group named by the call, and of the groups above.
//! 6. After an error, unfinished arrays and their chunks are deleted. Other nodes may already be in use by another
//!    writer: they remain, and the error names them.

use super::{Call, Checked, CheckedNode, Content, with_rest};
use crate::error::{Error, ErrorKind, Result};
use crate::metadata::{
    Attributes, Document, GroupMetadata, JsonText, NodeMetadata, ZARR_JSON, ZARRAY, ZATTRS, ZGROUP,
    ZarrFormat,
};
use crate::node::any::Node;
use crate::node::array::Array;
use crate::node::array::detached_write::OwnedWrite;
use crate::node::array::write_many::write_each;
use crate::node::group::Group;
use crate::node::hierarchy::AttributeChange;
use crate::node::hierarchy::ahead::{above, keys};
use crate::node::hierarchy::consolidate::{consolidate, renew, without_copies};
use crate::node::hierarchy::document::check_nbytes;
use crate::node::hierarchy::document_names::DOCUMENTS;
use crate::node::hierarchy::node_lock::NodeLock;
use crate::node::hierarchy::node_path::ancestors;
use crate::node::hierarchy::revision;
use crate::node::hierarchy::unfinished::Unfinished;
use crate::node::known_documents::{is_large, remember_large};
use crate::node::node_documents::read_metadata;
use crate::selection::Selection;
use crate::store::remote::{AheadStore, BegunPut, DocumentPut, PutIf, Waiting, interrupted_by, wait_each};
use crate::store::{Store, join, writer_of};
use crate::write::options::WriteOptions;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use zarrow_array::allocation;

/// Creates the nodes; returns each with its number in the call.
pub(super) fn create(call: &Call<'_>, ahead: &AheadStore) -> Result<Vec<(usize, Node)>> {
    let (created, unfinished, late) = (Vec::new(), Vec::new(), Vec::new());
    let mut batch = RemoteBatch { call, ahead, keys: None, created, unfinished, late };
    batch.ask()?;
    let checked = call.check(ahead)?;
    if (call.write.interrupted())() {
        return Err(ErrorKind::Interrupted.into());
    }
    batch.create(&checked).map_err(|error| batch.take_away(error))
}

struct RemoteBatch<'a> {
    call: &'a Call<'a>,
    ahead: &'a AheadStore,
    /// All keys below the common path of the call, if one answer held them.
    keys: Option<Vec<String>>,
    /// The nodes that were created.
    created: Vec<String>,
    /// The arrays with elements, and their unfinished documents.
    unfinished: Vec<(&'a CheckedNode, &'a Array, Unfinished<'a>)>,
    /// Puts that are awaited after the chunks.
    late: Vec<(Result<BegunPut>, For<'a>)>,
}

/// The purpose of a put.
enum For<'a> {
    /// A missing group above, or a group that may exist.
    AnyGroup(String),
    Node(&'a CheckedNode),
    Attributes(&'a CheckedNode),
}

impl For<'_> {
    /// Whether it is an array with elements.
    fn is_of_elements(&self) -> bool {
        matches!(self, For::Node(part) if matches!(part.content, Content::Filled(..)))
    }
}

impl<'a> RemoteBatch<'a> {
    fn unsheltered(&self) -> impl Iterator<Item = &'a CheckedNode> + use<'a> {
        self.call.parts.iter().filter(|part| !part.is_sheltered)
    }

    /// Returns the path of the deepest group above all nodes of the call.
    fn common(&self) -> &'a str {
        let tops = self.call.parts.iter().filter(|part| part.is_top).map(|part| part.path.as_str());
        let all = tops.chain(self.call.consolidated.as_deref());
        all.reduce(|one, other| {
            let is_below = |path: &str| {
                other == path || path.is_empty() || {
                    other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
                }
            };
            ancestors(one).chain([one]).rfind(|path| is_below(path)).unwrap_or_default()
        })
        .unwrap_or_default()
    }

    /// Step 1.
    fn ask(&mut self) -> Result<()> {
        let (call, ahead) = (self.call, self.ahead);
        let limits = &call.options.limits.metadata;
        let own: &[&str] = match call.zarr_format {
            ZarrFormat::V3 => &[ZARR_JSON],
            ZarrFormat::V2 => &DOCUMENTS,
        };
        let mut wanted = BTreeMap::new();
        for part in self.unsheltered() {
            if part.keeps_group || part.existing != super::Existing::Refuse {
                wanted.extend(keys(&part.path, own, limits));
            }
            if part.is_top {
                wanted.extend(above(&part.path, call.zarr_format, limits));
            }
        }
        let (store, common) = (&**call.store, self.common());
        let page = (!is_large(store, common)).then(|| ahead.begin_page(common));
        let groups: BTreeSet<&str> =
            self.unsheltered().filter(|part| part.is_top).flat_map(|part| ancestors(&part.path)).collect();
        ahead.take(ahead.ask(wanted.into_iter().collect()));
        // A missing group may be one of version 2.
        let missing = groups.into_iter().filter(|group| !ahead.has(&join(group, ZARR_JSON)));
        let others = missing.flat_map(|group| keys(group, &[ZARRAY, ZGROUP], limits)).collect();
        let others = (call.zarr_format == ZarrFormat::V3).then(|| ahead.ask(others));
        let listing = match page.map(|page| page.wait(&|| Ok(()))).transpose() {
            // A bucket may allow only lists of names.
            Err(error) if error.kind().code() != "permission" => return Err(error),
            listing => listing.ok().flatten().flatten(),
        };
        others.into_iter().for_each(|others| ahead.take(others));
        match listing {
            Some(listing) => {
                let found: Vec<String> = listing.values.into_iter().map(|value| value.key).collect();
                let names = names_below(common, &found);
                for part in self.unsheltered() {
                    let names = names.get(part.path.as_str()).cloned().unwrap_or_default();
                    ahead.set_names(&part.path, names.into_iter().collect());
                }
                self.keys = Some(found);
            }
            None => {
                remember_large(store, common);
                let begun: Vec<_> =
                    self.unsheltered().map(|part| (part, ahead.begin_list(&part.path, false))).collect();
                for (part, listing) in begun {
                    let listing = listing.wait(&|| Ok(())).map_err(|error| call.place(part, error))?;
                    let found: Vec<String> =
                        listing.values.into_iter().map(|value| value.key).chain(listing.prefixes).collect();
                    let mut names = names_below(&part.path, &found);
                    let names = names.remove(part.path.as_str()).unwrap_or_default();
                    ahead.set_names(&part.path, names.into_iter().collect());
                }
            }
        }
        for part in self.unsheltered() {
            ahead.assume_missing(&part.path, &DOCUMENTS);
            if part.is_top {
                ahead.settle(ancestors(&part.path));
            }
        }
        Ok(())
    }

    fn create(&mut self, checked: &Checked) -> Result<Vec<(usize, Node)>> {
        let (call, ahead) = (self.call, self.ahead);
        let store: &dyn Store = ahead;
        let mut nodes = allocation::with_capacity(call.parts.len())?;
        let held = NodeLock::above(store, "")?;
        let replaced: Vec<&str> = checked.replaced.iter().map(|at| call.parts[*at].path.as_str()).collect();
        if replaced.is_empty() {
            self.put_documents(checked, &[])?;
        } else {
            without_copies(store, &held, &replaced, call.options, false, || {
                self.put_documents(checked, &replaced)
            })
            .map(drop)?;
        }
        let put = self.put_chunks();
        let (late, purposes) = std::mem::take(&mut self.late).into_iter().unzip();
        self.end(late, purposes)?;
        put?;
        self.finish(&held, checked)?;
        for (at, part) in call.parts.iter().enumerate() {
            let node = match &part.content {
                Content::Group(metadata) if checked.kept.contains(&at) => {
                    Node::Group(self.kept(part, &metadata.attributes)?)
                }
                Content::Group(_) if !part.attributes_last.is_empty() => {
                    Node::Group(self.kept(part, &part.attributes_last)?)
                }
                Content::Group(metadata) => Node::Group(self.group(part, metadata.clone())),
                Content::Array(array) | Content::Filled(array, ..) => {
                    Node::Array(array.renewed(array.metadata().clone(), revision::present()).with_document())
                }
            };
            nodes.push((part.number, node));
        }
        self.consolidate(&held, checked)?;
        revision::count();
        Ok(nodes)
    }

    fn group(&self, part: &CheckedNode, metadata: GroupMetadata) -> Group {
        Group::new(Arc::clone(self.call.store), part.path.clone(), metadata, *self.call.options)
    }

    /// Returns an existing group, with the attributes of the call.
    fn kept(&self, part: &CheckedNode, attributes: &Attributes) -> Result<Group> {
        let found = read_metadata(self.ahead, &part.path, &self.call.options.limits.metadata)
            .map_err(|error| self.call.place(part, error))?;
        match found {
            NodeMetadata::Group(found)
                if attributes.iter().all(|(name, value)| found.attributes.get(name) == Some(value)) =>
            {
                Ok(self.group(part, found))
            }
            _ => {
                let group = self.call.keep(part, attributes)?;
                // Consolidating reads the changed document.
                self.ahead.forget_documents(&part.path, &DOCUMENTS);
                Ok(group)
            }
        }
    }

    /// Steps 2 and 3.
    fn put_documents(&mut self, checked: &Checked, replaced: &[&str]) -> Result<()> {
        let mut clearing = self.clear(replaced)?;
        let needs_documents_first = writer_of(self.ahead)?.needs_documents_first();
        let mut stages = self.stages(checked)?.into_iter().peekable();
        while let Some(stage) = stages.next() {
            // Other documents than the topmost may have keys that are being deleted.
            let is_below = |purpose: &For<'_>| match purpose {
                For::AnyGroup(_) => false,
                For::Node(part) | For::Attributes(part) => !part.is_top || part.array().is_some(),
            };
            if stage.iter().any(|(_, purpose)| is_below(purpose)) {
                wait_each(std::mem::take(&mut clearing))?;
            }
            let is_last = stages.peek().is_none() && !needs_documents_first;
            let (soon, late): (Stage<'a>, Stage<'a>) =
                stage.into_iter().partition(|(_, purpose)| !is_last || purpose.is_of_elements());
            let (puts, purposes): (Vec<DocumentPut>, Vec<For<'a>>) = soon.into_iter().unzip();
            let begun = self.ahead.begin_each(puts);
            let (puts, others): (Vec<DocumentPut>, Vec<For<'a>>) = late.into_iter().unzip();
            self.late = self.ahead.begin_each(puts).into_iter().zip(others).collect();
            self.end(begun, purposes)?;
        }
        wait_each(clearing).map(drop)
    }

    /// Waits for puts.
    fn end(&mut self, begun: Vec<Result<BegunPut>>, purposes: Vec<For<'a>>) -> Result<()> {
        let mut failed = None;
        for (result, purpose) in self.ahead.end_each(begun).into_iter().zip(purposes) {
            if let Err(error) = self.noted(result, &purpose) {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn noted(&mut self, result: Result<()>, purpose: &For<'_>) -> Result<()> {
        match (result, purpose) {
            (Ok(()), For::AnyGroup(path)) => self.created.push(path.clone()),
            (Ok(()), For::Node(part)) if !matches!(part.content, Content::Filled(..)) => {
                self.created.push(part.path.clone());
            }
            (Ok(()), _) => {}
            // Another process has created it.
            (Err(error), For::AnyGroup(_)) if matches!(error.kind(), ErrorKind::Conflict) => {}
            // `kept` tries again.
            (Err(error), For::Attributes(_)) if matches!(error.kind(), ErrorKind::Conflict) => {}
            (Err(error), For::Node(part) | For::Attributes(part)) => {
                let error = match error.kind() {
                    ErrorKind::Conflict => ErrorKind::Exists("a node").into(),
                    _ => error,
                };
                return Err(self.call.place(part, error));
            }
            (Err(error), For::AnyGroup(path)) => return Err(error.in_array(self.call.store.name(), path)),
        }
        Ok(())
    }

    /// Step 2: deletes the documents at `paths`, and begins to delete everything else below them.
    fn clear(&mut self, paths: &[&str]) -> Result<Vec<Waiting<()>>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let is_below = |key: &str, path: &str| {
            path.is_empty() || key.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
        };
        let found = match &self.keys {
            Some(keys) => {
                let of_any = |key: &&String| paths.iter().any(|path| is_below(key, path));
                keys.iter().filter(of_any).cloned().collect()
            }
            None => {
                let lists = paths.iter().map(|path| self.ahead.begin_list(path, true)).collect();
                let lists = wait_each(lists)?.into_iter();
                lists.flat_map(|listing| listing.values).map(|value| value.key).collect::<Vec<String>>()
            }
        };
        if let Some(keys) = &mut self.keys {
            keys.retain(|key| !paths.iter().any(|path| is_below(key, path)));
        }
        let documents: HashSet<String> =
            paths.iter().flat_map(|path| DOCUMENTS.map(|name| join(path, name))).collect();
        let (first, rest): (Vec<String>, Vec<String>) =
            found.into_iter().partition(|key| documents.contains(key));
        wait_each(self.ahead.begin_delete(first)?)?;
        self.ahead.begin_delete(rest)
    }

    /// Returns the puts of the documents in their order (steps 3 and 4).
    fn stages(&mut self, checked: &Checked) -> Result<Vec<Stage<'a>>> {
        let (call, ahead) = (self.call, self.ahead);
        let writer = writer_of(ahead)?;
        // Such a store may accept a node only after the group above it.
        let depth = |path: &str| if writer.needs_documents_first() { ancestors(path).count() } else { 0 };
        let mut stages: BTreeMap<(u8, usize), Stage<'a>> = BTreeMap::new();
        let mut add = |stage: u8, path: &str, name: &str, bytes: &[u8], when: PutIf, purpose: For<'a>| {
            let put = DocumentPut { key: join(path, name), bytes: bytes.to_vec(), when };
            stages.entry((stage, depth(path))).or_default().push((put, purpose));
        };
        for group in &checked.implied {
            let attributes = Attributes::default();
            let metadata = GroupMetadata { zarr_format: call.zarr_format, attributes, consolidated: None };
            for (name, document) in metadata.documents()? {
                add(0, group, name, &document, PutIf::Absent, For::AnyGroup(group.clone()));
            }
        }
        // Whether a conditional put of a topmost node has to succeed first.
        let are_decided = call.parts.iter().any(|part| part.is_top && !part.keeps_group);
        for (at, part) in call.parts.iter().enumerate() {
            let first = u8::from(!part.is_top && are_decided);
            if checked.kept.contains(&at) {
                if let Content::Group(metadata) = &part.content
                    && let Some((name, document, when)) =
                        self.changed_attributes(part, &metadata.attributes)?
                {
                    add(first + 1, &part.path, name, &document, when, For::Attributes(part));
                }
                continue;
            }
            let unfinished = match &part.content {
                Content::Filled(array, ..) if Unfinished::suits(writer, call.zarr_format) => {
                    self.unfinished.push((part, array, Unfinished::new(ahead, &part.path)?));
                    self.unfinished.last()
                }
                _ => None,
            };
            let documents: &[Document] =
                unfinished.map_or(&part.documents, |(.., unfinished)| unfinished.documents());
            for (name, document) in documents {
                // Attributes alone do not make a node.
                if *name == ZATTRS {
                    add(first, &part.path, name, document, PutIf::Always, For::Attributes(part));
                } else {
                    add(first + 1, &part.path, name, document, PutIf::Absent, For::Node(part));
                }
            }
        }
        Ok(stages.into_values().collect())
    }

    /// Returns the document of an existing group with more attributes; `None` if it has them. Without
    /// conditions it is left to [`kept`](RemoteBatch::kept), which raises the error.
    fn changed_attributes(
        &self,
        part: &CheckedNode,
        attributes: &Attributes,
    ) -> Result<Option<(&'static str, Vec<u8>, PutIf)>> {
        if attributes.is_empty() || !self.ahead.has_conditions() {
            return Ok(None);
        }
        let limit = self.call.options.limits.metadata.max_consolidated_nbytes;
        let name = if self.call.zarr_format == ZarrFormat::V3 { ZARR_JSON } else { ZATTRS };
        let before = self.ahead.get(&join(&part.path, name), limit)?;
        let when = if before.is_some() { PutIf::Unchanged } else { PutIf::Absent };
        let mut document = match &before {
            Some(bytes) => JsonText::parse(allocation::copied(bytes)?, limit)?,
            None => JsonText::default(),
        };
        let change = AttributeChange::Update(attributes.clone());
        if name == ZARR_JSON {
            let mut attributes = document.object("attributes")?;
            change.apply(&mut attributes)?;
            document.set_object("attributes", &attributes)?;
        } else {
            change.apply(&mut document)?;
        }
        let after = document.into_bytes();
        check_nbytes(&after, limit)?;
        Ok((before.as_ref() != Some(&after)).then_some((name, after, when)))
    }

    /// Step 4: the chunks.
    fn put_chunks(&self) -> Result<()> {
        let mut writes = Vec::new();
        for part in &self.call.parts {
            let Content::Filled(array, source, write_empty_chunks) = &part.content else { continue };
            let options = WriteOptions::default()
                .durability(self.call.options.durability)
                .write_empty_chunks(*write_empty_chunks);
            let request = array.write_request(Selection::all(array.shape()))?.options(&options);
            writes.push(OwnedWrite::new(request, Arc::clone(source)).unguarded());
        }
        write_each(writes, self.call.write.interrupted())
    }

    /// Step 4: the attributes that groups get last, and the documents of arrays with elements.
    fn finish(&mut self, held: &NodeLock<'_>, checked: &Checked) -> Result<()> {
        let (mut puts, mut purposes) = (Vec::new(), Vec::new());
        for (at, part) in self.call.parts.iter().enumerate() {
            if !checked.kept.contains(&at)
                && let Some((name, bytes, when)) = self.changed_attributes(part, &part.attributes_last)?
            {
                puts.push(DocumentPut { key: join(&part.path, name), bytes, when });
                purposes.push(For::Attributes(part));
            }
        }
        let begun = self.ahead.begin_each(puts);
        let finished = self.finish_arrays(held);
        self.end(begun, purposes)?;
        finished
    }

    fn finish_arrays(&mut self, held: &NodeLock<'_>) -> Result<()> {
        if self.unfinished.is_empty() {
            return Ok(());
        }
        let (call, ahead) = (self.call, self.ahead);
        // The groups above may have been consolidated while the elements were written.
        let limits = &call.options.limits.metadata;
        let tops = call.parts.iter().filter(|part| part.is_top);
        let wanted: BTreeMap<String, u64> =
            tops.flat_map(|part| above(&part.path, call.zarr_format, limits)).collect();
        let asked = ahead.ask(wanted.into_iter().collect());
        let (mut puts, mut late) = (Vec::new(), Vec::new());
        let unfinished = std::mem::take(&mut self.unfinished);
        let is_sure =
            |part: &CheckedNode| ahead.has_version(&join(&part.path, ZARR_JSON)) || !ahead.has_conditions();
        for own in unfinished {
            match own.0.documents.first().filter(|_| is_sure(own.0)) {
                Some((name, document)) => {
                    let key = join(&own.0.path, name);
                    puts.push((DocumentPut { key, bytes: document.clone(), when: PutIf::Unchanged }, own));
                }
                None => late.push(own),
            }
        }
        let (puts, owners): (Vec<_>, Vec<_>) = puts.into_iter().unzip();
        let mut failed = None;
        for (result, own) in ahead.put_each(puts).into_iter().zip(owners) {
            let error = match result {
                Ok(()) => {
                    self.created.push(own.0.path.clone());
                    continue;
                }
                Err(error) if matches!(error.kind(), ErrorKind::Conflict) => {
                    ErrorKind::Exists("another node").into()
                }
                Err(error) => error,
            };
            failed.get_or_insert(call.place(own.0, error));
            self.unfinished.push(own);
        }
        for own in late {
            let documents = own.0.documents.iter();
            let mut finished = documents.map(|(_, document)| own.2.finish(held, document, call.options));
            match finished.find_map(Result::err) {
                None => self.created.push(own.0.path.clone()),
                Some(error) => {
                    failed.get_or_insert(call.place(own.0, error));
                    self.unfinished.push(own);
                }
            }
        }
        ahead.take(asked);
        failed.map_or(Ok(()), Err)
    }

    /// Step 5.
    fn consolidate(&self, held: &NodeLock<'_>, checked: &Checked) -> Result<()> {
        let (call, ahead) = (self.call, self.ahead);
        let parts = call.parts.iter().map(|part| part.path.as_str());
        let paths: Vec<&str> = checked.implied.iter().map(String::as_str).chain(parts).collect();
        if let Some(path) = &call.consolidated {
            self.know_nodes(&paths, path);
            consolidate(ahead, path, call.zarr_format, call.options)
                .map_err(|error| error.in_array(call.store.name(), path))?;
        }
        renew(ahead, held, &paths, call.options);
        Ok(())
    }

    /// Prepares consolidating: requests the documents of all nodes below `path` that are not known yet.
    fn know_nodes(&self, paths: &[&str], path: &str) {
        let (call, ahead) = (self.call, self.ahead);
        let Some(listed) = &self.keys else { return };
        let own = paths.iter().map(|path| join(path, ZARR_JSON));
        let keys: Vec<String> = listed.iter().cloned().chain(own).collect();
        let node_of = |key: &String| {
            let (node, name) = key.rsplit_once('/').unwrap_or(("", key));
            (DOCUMENTS.contains(&name)).then(|| node.to_owned())
        };
        let nodes: BTreeSet<String> = keys.iter().filter_map(node_of).collect();
        let mut names = names_below(path, &keys);
        let limits = &call.options.limits.metadata;
        let known: HashSet<&str> = paths.iter().copied().collect();
        let wanted: Vec<(String, u64)> = listed
            .iter()
            .filter(|key| node_of(key).is_some_and(|node| !known.contains(node.as_str())))
            .filter(|key| !ahead.has(key))
            .map(|key| (key.clone(), limits.max_consolidated_nbytes))
            .collect();
        ahead.take(ahead.ask(wanted));
        for node in &nodes {
            ahead.set_names(node, names.remove(node.as_str()).unwrap_or_default().into_iter().collect());
            ahead.assume_missing(node, &DOCUMENTS);
        }
    }

    /// Step 6.
    fn take_away(&self, error: Error) -> Error {
        // A wait of this thread would fail again after an interruption.
        interrupted_by(Rc::new(|| false), || {
            self.ahead.forget();
            for (_, array, unfinished) in &self.unfinished {
                unfinished.take_away(array, self.call.options);
            }
            let paths: Vec<&str> = self.created.iter().map(String::as_str).collect();
            if let Ok(held) = NodeLock::above(self.ahead, "") {
                renew(self.ahead, &held, &paths, self.call.options);
            }
        });
        revision::count();
        with_rest(error, &self.created)
    }
}

/// The puts of one batch.
type Stage<'a> = Vec<(DocumentPut, For<'a>)>;

/// Returns the names directly below each folder of `keys`, for `path` and the folders below it.
fn names_below<'k>(path: &str, keys: &'k [String]) -> BTreeMap<&'k str, BTreeSet<String>> {
    let mut names: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for key in keys {
        let start = match path {
            "" => Some(0),
            path => key
                .strip_prefix(path)
                .and_then(|rest| rest.strip_prefix('/'))
                .map(|rest| key.len() - rest.len()),
        };
        let Some(mut from) = start else { continue };
        for name in key[from..].split('/') {
            names.entry(key[..from].trim_end_matches('/')).or_default().insert(name.to_owned());
            from += name.len() + 1;
        }
    }
    names
}
