//! The profiles of AWS: `~/.aws/credentials` and `~/.aws/config`, or the files named by the environment.

use crate::location::unsupported;
use std::collections::BTreeMap;
use std::path::PathBuf;
use zarrow::Result;

/// The settings of a profile that a store needs, by the names of `object_store`.
const SETTINGS: [(&str, &str); 5] = [
    ("aws_access_key_id", "aws_access_key_id"),
    ("aws_secret_access_key", "aws_secret_access_key"),
    ("aws_session_token", "aws_session_token"),
    ("region", "aws_region"),
    ("endpoint_url", "aws_endpoint_url"),
];

/// Settings of a profile with keys that have to be fetched from elsewhere.
const INDIRECT: [&str; 6] =
    ["sso_session", "sso_start_url", "role_arn", "credential_process", "credential_source", "source_profile"];

/// Returns the settings of the profile `name`; `None` if no file has it.
pub fn aws_profile(name: &str) -> Result<Option<BTreeMap<String, String>>> {
    let file = |variable: &str, default: &str| {
        let named = std::env::var_os(variable).map(PathBuf::from);
        named.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".aws").join(default)))
    };
    let read =
        |path: Option<PathBuf>| path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let config = read(file("AWS_CONFIG_FILE", "config"));
    let credentials = read(file("AWS_SHARED_CREDENTIALS_FILE", "credentials"));
    from_texts(name, &config, &credentials)
}

fn from_texts(name: &str, config: &str, credentials: &str) -> Result<Option<BTreeMap<String, String>>> {
    let mut found = section(config, |heading| {
        heading == name && name == "default" || named(heading, "profile") == Some(name)
    });
    // Keys in the credentials file win over keys in the config file.
    if let Some(own) = section(credentials, |heading| heading == name) {
        found.get_or_insert_default().extend(own);
    }
    let Some(mut found) = found else { return Ok(None) };
    if !found.contains_key("aws_access_key_id")
        && let Some(way) = INDIRECT.iter().find(|way| found.contains_key(**way))
    {
        return Err(unsupported(format!(
            "the AWS profile {name:?} gets its keys by {way}, which zarrow does not support: run `aws configure \
             export-credentials --profile {name} --format env`, and set the variables it prints"
        )));
    }
    if let Some(services) = found.get("services") {
        let Some(endpoints) = section(config, |heading| named(heading, "services") == Some(services)) else {
            return Err(unsupported(format!(
                "the AWS profile {name:?} names the services {services:?}, and there is no section [services {services}] \
                 in the file of profiles"
            )));
        };
        if let Some(endpoint) = endpoints.get("s3.endpoint_url") {
            found.insert("endpoint_url".to_owned(), endpoint.clone());
        }
    }
    let kept = SETTINGS.iter().filter_map(|(from, to)| Some(((*to).to_owned(), found.get(*from)?.clone())));
    Ok(Some(kept.collect()))
}

/// Returns the name in a heading such as `profile lab` or `profile "my lab"`.
fn named<'a>(heading: &'a str, kind: &str) -> Option<&'a str> {
    let name = heading.strip_prefix(kind).filter(|rest| rest.starts_with([' ', '\t']))?.trim();
    let unquoted = ['"', '\''].iter().find_map(|quote| name.strip_prefix(*quote)?.strip_suffix(*quote));
    Some(unquoted.unwrap_or(name))
}

/// Returns the settings below the given headings. Indented lines are settings of the setting above: `s3.endpoint_url`.
fn section(text: &str, is_meant: impl Fn(&str) -> bool) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let (mut inside, mut above) = (false, String::new());
    for line in text.lines() {
        if line.trim().is_empty() || line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if let Some((heading, _)) = line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            inside = is_meant(heading.trim());
            if inside {
                found.get_or_insert_default();
            }
        } else if inside && let (Some((key, value)), Some(found)) = (line.split_once('='), &mut found) {
            let mut key = key.trim().to_ascii_lowercase();
            if line.starts_with([' ', '\t']) {
                key = format!("{above}.{key}");
            } else {
                above.clone_from(&key);
            }
            found.insert(key, value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  region = no\n[profile lab]\nregion=us-west-2\n\
                          endpoint_url = http://localhost:9000\n[profile single]\nsso_session = corp\n\
                          [profile near]\nservices = near-ones\nendpoint_url = http://other\n[services near-ones]\ndynamodb =\n  \
                          endpoint_url = http://no\ns3 =\n  endpoint_url = http://near:9000\n\
                          [profile \"my lab\"] # own\nservices = my ones\n[services 'my ones']\ns3 =\n  endpoint_url = http://mine\n\
                          [profile lost]\nservices = none\n";
    const CREDENTIALS: &str = "# keys\n[default]\naws_access_key_id = AK\naws_secret_access_key = a=b\n[lab]\naws_access_key_id=LAB\n";

    #[test]
    fn profiles_are_read_from_both_files() {
        let of = |name: &str| from_texts(name, CONFIG, CREDENTIALS).unwrap().unwrap();
        let default = of("default");
        assert_eq!(default["aws_access_key_id"], "AK");
        assert_eq!(default["aws_secret_access_key"], "a=b");
        assert_eq!(default["aws_region"], "eu-west-1");
        let lab = of("lab");
        assert_eq!((&*lab["aws_region"], &*lab["aws_access_key_id"]), ("us-west-2", "LAB"));
        assert_eq!(lab["aws_endpoint_url"], "http://localhost:9000");
        assert_eq!(of("near")["aws_endpoint_url"], "http://near:9000");
        assert_eq!(of("my lab")["aws_endpoint_url"], "http://mine");
        let error = from_texts("lost", CONFIG, CREDENTIALS).unwrap_err();
        assert!(error.to_string().contains("no section [services none]"), "{error}");
        assert_eq!(from_texts("none", CONFIG, CREDENTIALS).unwrap(), None);
        let error = from_texts("single", CONFIG, CREDENTIALS).unwrap_err();
        assert!(error.to_string().contains("export-credentials --profile single"));
    }
}
