//! No error, name or debug view shows the secrets in the options, whatever the server says.

use crate::arrays::{policy, store};
use crate::message::Answer;
use crate::server::{Server, well};
use serde_json::json;
use zarrow::store::remote::{ByteRange, Condition, RemoteStore, Request, fetch, wait};
use zarrow_cloud::{CloudStore, StorageOptions};

#[test]
fn secrets_are_never_shown() {
    let server = Server::start(well());
    // A server may echo the request.
    let body = |sent: &str| {
        format!(
            "<Error><Code>SignatureDoesNotMatch</Code><Message>{sent}</Message><StringToSign>{sent}</StringToSign></Error>"
        )
    };
    let http = r#"{"headers": {"Authorization": "Bearer own-token"}}"#;
    let url = format!("http://user:pass-word@{}/data?sig=sig-of-query", server.address);
    let http = CloudStore::new(&url, StorageOptions::from_json(http).unwrap()).unwrap().with_policy(policy());
    let of = |url: &str, options: serde_json::Value| {
        let options = StorageOptions::from_json(&options.to_string()).unwrap();
        CloudStore::new(url, options).unwrap().with_policy(policy())
    };
    let endpoint = server.url("");
    let sas = "sv=2022-11-02&sp=rl&sig=c2ln%2FbmF0%2BdXJl%3D";
    let azure = json!({ "account_name": "me", "endpoint_url": &endpoint, "sas_token": sas });
    let google = json!({ "token": "ya29.access-token-1", "endpoint_url": endpoint.trim_end_matches('/') });
    let login =
        json!({ "anon": true, "endpoint_url": endpoint.replace("http://", "http://user:pass-word@") });
    let stores = [
        (of("az://files/a", azure), "wrong c2ln/bmF0+dXJl= or c2ln%2fbmF0%2bdXJl%3d"),
        (of("gs://bucket/a", google), "ya29.access-token-1"),
        (of("s3://bucket/a", login), "no user:pass-word here"),
        (
            of(&server.url("data"), json!({ "headers": { "Cookie": "session=of-a-cookie; theme=dark" } })),
            "of-a-cookie",
        ),
        (store(&server, "bucket/a", true), "AKIDEXAMPLE with very-secret-indeed"),
        (http, "Bearer own-token, sig-of-query"),
    ];
    let secrets = [
        "c2ln", "access-token-1", "of-a-cookie", "AKIDEXAMPLE", "very-secret-indeed", "own-token",
        "sig-of-query", "pass-word", "dXNlcjpw",
    ];
    for status in [200, 301, 400, 403, 404, 500] {
        for (store, sent) in &stores {
            let answer = Answer::new(status).of(body(sent)).with("location", "http://[bad?sig-of-query");
            server.answer_with(Some(answer));
            let mut texts = vec![format!("{store:?}"), store.name().to_owned()];
            let mut errors = Vec::new();
            errors.extend(fetch(store, Request::new("k", ByteRange::Range(0..5)), 5, &|| Ok(())).err());
            errors.extend(wait(|done| store.list("", true, done), &|| Ok(())).err());
            if let Some(writer) = store.writer() {
                let put = |done| writer.put("k", vec![1].into(), Condition::IfAbsent, done);
                errors.extend(wait(put, &|| Ok(())).err());
                errors.extend(wait(|done| writer.delete(vec!["k".into()], done), &|| Ok(())).err());
            }
            texts.extend(errors.iter().flat_map(|error| [error.to_string(), format!("{error:?}")]));
            for (text, secret) in texts.iter().flat_map(|text| secrets.map(|secret| (text, secret))) {
                assert!(!text.contains(secret), "{status}: {text}");
            }
        }
    }
}
