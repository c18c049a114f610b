//! The server's objects, with the needed part of S3: GET, HEAD, PUT, DELETE, lists, deletes of many, multipart uploads.

use crate::message::{Answer, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object of one version.
#[derive(Debug, Clone)]
pub struct Object {
    pub bytes: Arc<Vec<u8>>,
    pub e_tag: String,
    /// Headers of the put that are returned: `x-amz-meta-...`.
    metadata: Metadata,
}

type Metadata = Vec<(String, String)>;

/// The server's objects, by `bucket/key`.
#[derive(Debug, Default)]
pub struct Objects {
    pub all: BTreeMap<String, Object>,
    uploads: BTreeMap<String, (Metadata, BTreeMap<u32, Vec<u8>>)>,
    versions: u64,
    /// Whether conditions of a put are ignored.
    pub ignores_conditions: bool,
    /// Whether only `If-None-Match` of a put is ignored.
    pub ignores_absence: bool,
    /// Whether metadata of a put are dropped.
    pub forgets_metadata: bool,
    /// Whether responses have no ETag.
    pub has_no_e_tags: bool,
    /// Whether lists ignore these words of the request.
    pub ignored_in_lists: &'static [&'static str],
    pub puts: u64,
}

impl Objects {
    pub fn put(&mut self, path: &str, bytes: Vec<u8>) -> String {
        self.put_with(path, bytes, Metadata::new())
    }

    fn put_with(&mut self, path: &str, bytes: Vec<u8>, metadata: Metadata) -> String {
        self.versions += 1;
        self.puts += 1;
        let e_tag = format!("\"{:032x}\"", self.versions);
        let bytes = Arc::new(bytes);
        self.all.insert(path.to_owned(), Object { bytes, e_tag: e_tag.clone(), metadata });
        e_tag
    }

    fn metadata(&self, message: &Message) -> Metadata {
        let headers = message.headers.iter().filter(|(name, _)| name.starts_with("x-amz-meta-"));
        headers.filter(|_| !self.forgets_metadata).cloned().collect()
    }

    /// Returns the response to a request, and the object of its body.
    pub fn answer(&mut self, message: &Message) -> Answer {
        let path = message.path().trim_start_matches('/').to_owned();
        let is_bucket = !path.trim_end_matches('/').contains('/');
        match message.method.as_str() {
            "GET" if is_bucket && message.query("list-type").is_some() => self.list(&path, message),
            "GET" | "HEAD" => self.get(&path, message),
            "POST" if message.target.contains("?delete") => self.delete_many(&path, message),
            "POST" if message.target.contains("?uploads") => {
                self.versions += 1;
                let id = format!("upload{}", self.versions);
                self.uploads.insert(id.clone(), (self.metadata(message), BTreeMap::new()));
                Answer::new(200).of(format!(
                    "<InitiateMultipartUploadResult><UploadId>{id}</UploadId></InitiateMultipartUploadResult>"
                ))
            }
            "POST" => match message.query("uploadId").and_then(|id| self.uploads.remove(&id)) {
                Some((metadata, parts)) => {
                    let e_tag = self.put_with(&path, parts.into_values().flatten().collect(), metadata);
                    Answer::new(200).of(format!(
                        "<CompleteMultipartUploadResult><ETag>{}</ETag></CompleteMultipartUploadResult>",
                        e_tag.replace('"', "&quot;")
                    ))
                }
                None => Answer::error(404, "NoSuchUpload", "There is no such upload."),
            },
            "PUT" => self.set(&path, message),
            "DELETE" => {
                match message.query("uploadId") {
                    Some(id) => drop(self.uploads.remove(&id)),
                    None => drop(self.all.remove(&path)),
                }
                Answer::new(204)
            }
            _ => Answer::error(405, "MethodNotAllowed", "The method is not allowed."),
        }
    }

    fn get(&self, path: &str, message: &Message) -> Answer {
        let Some(object) = self.all.get(path) else {
            return Answer::error(404, "NoSuchKey", "The key does not exist.");
        };
        if message.header("if-match").is_some_and(|wanted| wanted != object.e_tag) {
            return Answer::error(412, "PreconditionFailed", "It is another one.");
        }
        let nbytes = object.bytes.len();
        let e_tag = |mut answer: Answer| {
            answer.headers.extend(object.metadata.clone());
            if self.has_no_e_tags { answer } else { answer.with("etag", &object.e_tag) }
        };
        let Some(range) = message.header("range") else {
            return e_tag(Answer::new(200)).of(object.bytes.to_vec());
        };
        let (first, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
        let (start, end) = match (first, last) {
            ("", last) => (nbytes.saturating_sub(last.parse().unwrap()), nbytes),
            (first, "") => (first.parse().unwrap(), nbytes),
            (first, last) => {
                (first.parse().unwrap(), nbytes.min(last.parse::<usize>().unwrap().saturating_add(1)))
            }
        };
        if start >= end {
            return Answer::error(416, "InvalidRange", "There are no such bytes.")
                .with("content-range", format!("bytes */{nbytes}"));
        }
        let range = format!("bytes {start}-{}/{nbytes}", end - 1);
        e_tag(Answer::new(206)).with("content-range", range).of(object.bytes[start..end].to_vec())
    }

    fn set(&mut self, path: &str, message: &Message) -> Answer {
        if let (Some(id), Some(number)) = (message.query("uploadId"), message.query("partNumber")) {
            let Some((_, parts)) = self.uploads.get_mut(&id) else {
                return Answer::error(404, "NoSuchUpload", "There is no such upload.");
            };
            parts.insert(number.parse().unwrap(), message.body.clone());
            return Answer::new(200).with("etag", format!("\"part{number}\""));
        }
        let there = self.all.get(path).map(|object| object.e_tag.as_str());
        let refused = message.header("if-none-match").is_some() && there.is_some() && !self.ignores_absence
            || message.header("if-match").is_some_and(|wanted| there != Some(wanted));
        if refused && !self.ignores_conditions {
            return Answer::error(412, "PreconditionFailed", "The condition does not hold.");
        }
        let e_tag = self.put_with(path, message.body.clone(), self.metadata(message));
        Answer::new(200).with("etag", e_tag)
    }

    fn delete_many(&mut self, bucket: &str, message: &Message) -> Answer {
        let text = String::from_utf8(message.body.clone()).unwrap();
        let mut deleted = String::new();
        for part in text.split("<Key>").skip(1) {
            let key = part.split("</Key>").next().unwrap();
            self.all.remove(&format!("{}/{key}", bucket.trim_end_matches('/')));
            deleted.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
        }
        Answer::new(200).of(format!("<DeleteResult>{deleted}</DeleteResult>"))
    }

    fn list(&self, bucket: &str, message: &Message) -> Answer {
        const PAGE: usize = 100;
        let bucket = format!("{}/", bucket.trim_end_matches('/'));
        let query = |name: &str| message.query(name).filter(|_| !self.ignored_in_lists.contains(&name));
        let prefix = query("prefix").unwrap_or_default();
        let delimiter = query("delimiter").filter(|delimiter| !delimiter.is_empty());
        let after = message.query("continuation-token").unwrap_or_default();
        let mut entries = BTreeMap::new();
        for (path, object) in &self.all {
            let Some(key) = path.strip_prefix(&bucket) else { continue };
            let Some(rest) = key.strip_prefix(&prefix) else { continue };
            match delimiter.as_ref().and_then(|delimiter| rest.split_once(delimiter.as_str())) {
                Some((folder, _)) => drop(entries.insert(format!("{prefix}{folder}/"), None)),
                None => drop(entries.insert(key.to_owned(), Some(object))),
            }
        }
        let mut rest = entries.into_iter().filter(|(name, _)| *name > after);
        let page: Vec<_> = rest.by_ref().take(PAGE).collect();
        let next = rest.next().and(page.last().map(|(name, _)| name.clone()));
        let mut text = format!("<ListBucketResult><KeyCount>{}</KeyCount>", page.len());
        for (name, object) in &page {
            text.push_str(&match object {
                Some(object) => format!(
                    "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>{}</ETag>\
                     <Size>{}</Size></Contents>",
                    object.e_tag.replace('"', "&quot;"),
                    object.bytes.len()
                ),
                None => format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"),
            });
        }
        if let Some(next) = next {
            text.push_str(&format!(
                "<IsTruncated>true</IsTruncated><NextContinuationToken>{next}</NextContinuationToken>"
            ));
        }
        Answer::new(200).of(format!("{text}</ListBucketResult>"))
    }
}
