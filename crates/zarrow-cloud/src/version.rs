//! Versions of values, by the rules of each service.
//!
//! A strong ETag is a version everywhere. Google Cloud Storage uses the generation of an object as the condition of a
//! put; it follows the ETag after a line break. A weak ETag, an empty one, or none, is not a version: then nothing is
//! resumed, split or kept.

use object_store::{Attribute, Attributes, GetResult, UpdateVersion};
use zarrow::store::remote::{ObjectVersion, WriteMark};

/// Returns the version of an answer; `None` without a reliable one.
pub fn from_answer(answer: &GetResult, has_generations: bool) -> Option<ObjectVersion> {
    let meta = &answer.meta;
    let version = from_parts(meta.e_tag.as_deref(), meta.version.as_deref(), has_generations)?;
    let mark = Attribute::Metadata(WriteMark::NAME.into());
    Some(version.written_by(answer.attributes.get(&mark).map(AsRef::as_ref)))
}

/// Returns the attributes that store a mark.
pub fn attributes(mark: &WriteMark) -> Attributes {
    Attributes::from_iter([(Attribute::Metadata(WriteMark::NAME.into()), mark.as_str().to_owned())])
}

/// Returns the version made of these parts.
pub fn from_parts(
    e_tag: Option<&str>,
    generation: Option<&str>,
    has_generations: bool,
) -> Option<ObjectVersion> {
    let e_tag = e_tag.filter(|e_tag| !matches!(*e_tag, "" | "\"\"") && !e_tag.starts_with("W/"))?;
    Some(match generation.filter(|_| has_generations) {
        Some(generation) => ObjectVersion::new(&format!("{e_tag}\n{generation}")),
        None => ObjectVersion::new(e_tag),
    })
}

/// Returns the ETag of a version.
pub fn e_tag(version: &ObjectVersion) -> &str {
    version.as_str().split('\n').next().unwrap_or_default()
}

/// Returns the version as the condition of a put.
pub fn to_update(version: &ObjectVersion) -> UpdateVersion {
    let generation = version.as_str().split_once('\n').map(|(_, generation)| generation.to_owned());
    UpdateVersion { e_tag: Some(e_tag(version).to_owned()), version: generation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weak_and_empty_tags_are_no_versions_and_generations_go_along() {
        for tag in ["W/\"a\"", "\"\"", ""] {
            assert_eq!(from_parts(Some(tag), Some("7"), true), None);
        }
        assert_eq!(from_parts(None, Some("7"), true), None);
        assert_eq!(from_parts(Some("\"a\""), Some("7"), false), Some(ObjectVersion::new("\"a\"")));
        let version = from_parts(Some("\"a\""), Some("7"), true).unwrap();
        assert_eq!(e_tag(&version), "\"a\"");
        let update = to_update(&version);
        assert_eq!((update.e_tag.as_deref(), update.version.as_deref()), (Some("\"a\""), Some("7")));
    }
}
