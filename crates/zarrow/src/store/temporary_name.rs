//! Names of writers' temporary files and folders. They begin with a reserved prefix, which keys may not contain.

use crate::error::key_fault::RESERVED;
use crate::store::join;
use crate::store::key::split;
use crate::store::owner::unique;

/// Returns a new name for a temporary file or folder, unique among all writers.
pub fn unique_name() -> String {
    format!("{RESERVED}{}", unique())
}

/// Whether `name` is that of a temporary file or folder of a writer.
pub fn is_reserved(name: &str) -> bool {
    name.starts_with(RESERVED)
}

/// Prefix of a lock file's name, before the name of the key.
pub const LOCK: &str = "lock-";

/// Returns the path of the lock file for `key`.
pub fn lock_path(key: &str) -> String {
    let (parent, name) = split(key);
    join(parent, &lock_name(name))
}

/// Returns the name of the lock file for the value `name`.
pub fn lock_name(name: &str) -> String {
    format!("{RESERVED}{LOCK}{name}")
}
