//! Generates the texts of `help()` from the stubs, so that docstrings are written once.
//!
//! 1. Each stub `_*.pyi` of `python/zarrow` and its folders is read line by line. A `class` or a `def` names the object of the next
//!    docstring.
//! 2. The docstring is dedented, as by `inspect.cleandoc`.
//! 3. The docstrings of a private class, such as `_Node`, are also those of the classes derived from it.
//! 4. Each docstring becomes an arm of the macro `help!`, included by `src/python/help.rs`: `help!("Array.read")` is the
//!    text of the method. The constant `TEXTS` lists all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs, io};

/// Classes and their private bases.
type Derived = Vec<(String, String)>;

fn main() -> io::Result<()> {
    let stubs = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../python/zarrow");
    let (mut texts, mut derived) = (BTreeMap::new(), Vec::new());
    read_folder(&stubs, &mut texts, &mut derived)?;
    // Step 3.
    for (class, base) in &derived {
        let prefix = format!("{base}.");
        let inherited: Vec<_> = texts
            .iter()
            .filter_map(|(name, text)| Some((name.strip_prefix(&prefix)?, text)))
            .map(|(member, text)| (format!("{class}.{member}"), text.clone()))
            .collect();
        texts.extend(inherited);
    }
    // Step 4.
    let arms = joined(&texts, |name, text| format!("    ({name:?}) => {{ {text:?} }};\n"));
    let items = joined(&texts, |name, _| format!("    ({name:?}, help!({name:?})),\n"));
    let source = format!(
        "macro_rules! help {{\n{arms}}}\n\nconst TEXTS: [(&str, &str); {}] = [\n{items}];\n",
        texts.len()
    );
    fs::write(Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("help.rs"), source)
}

/// Adds the docstrings of the stubs in `folder` and in the folders below it.
fn read_folder(folder: &Path, texts: &mut BTreeMap<String, String>, derived: &mut Derived) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            read_folder(&path, texts, derived)?;
        } else if name.starts_with('_') && name.ends_with(".pyi") {
            println!("cargo::rerun-if-changed={}", path.display());
            read_stub(&fs::read_to_string(&path)?, texts, derived);
        }
    }
    Ok(())
}

fn joined(texts: &BTreeMap<String, String>, line: impl Fn(&str, &str) -> String) -> String {
    texts.iter().map(|(name, text)| line(name, text)).collect()
}

/// Steps 1 and 2: adds each docstring by its name; of several overloads, only the first counts. Also adds classes
/// derived from a private class.
fn read_stub(stub: &str, texts: &mut BTreeMap<String, String>, derived: &mut Derived) {
    let mut lines = stub.lines();
    let (mut class, mut name) = (None, None);
    while let Some(line) = lines.next() {
        let (indent, code) = (line.len() - line.trim_start().len(), line.trim());
        if let Some(rest) = code.strip_prefix("class ") {
            let found = identifier(rest);
            if let Some((_, base)) = rest.split_once("(_") {
                derived.push((found.clone(), format!("_{}", identifier(base))));
            }
            class = Some(found);
            name = class.clone();
        } else if let Some(rest) = code.strip_prefix("def ").filter(|_| !code.ends_with("...")) {
            let function = identifier(rest);
            name = Some(match class.as_ref().filter(|_| indent > 0) {
                Some(class) => format!("{class}.{function}"),
                None => function,
            });
        } else if code.ends_with("...") {
            // A definition without a docstring: the next docstring is that of a variable.
            name = None;
        } else if let Some(first) = code.strip_prefix("\"\"\"").or_else(|| code.strip_prefix("r\"\"\"")) {
            let text = docstring(first, indent, &mut lines);
            if let Some(name) = name.take() {
                texts.entry(name).or_insert(text);
            }
        }
    }
}

/// Returns the name at the start of a definition.
fn identifier(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// Returns a docstring, dedented; `first` is the text after the opening quotes.
fn docstring<'a>(first: &str, indent: usize, lines: &mut impl Iterator<Item = &'a str>) -> String {
    if let Some(text) = first.strip_suffix("\"\"\"") {
        return text.to_owned();
    }
    let mut text = first.to_owned();
    for line in lines.take_while(|line| line.trim() != "\"\"\"") {
        text.push('\n');
        text.push_str(line.get(indent..).unwrap_or_default().trim_end());
    }
    text
}
