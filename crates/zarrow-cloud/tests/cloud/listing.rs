//! What lies below a prefix.

use crate::arrays::{adapter, store};
use crate::server::{Fault, Server, well};
use zarrow::store::Store;
use zarrow::store::remote::{Listing, RemoteStore, wait};

fn list(store: &dyn RemoteStore, prefix: &str, recursive: bool) -> zarrow::Result<Listing> {
    wait(|done| store.list(prefix, recursive, done), &|| Ok(()))
}

#[test]
fn names_and_sizes_over_many_pages() {
    // The first page has to be asked for twice.
    let server = Server::start(Box::new(|_, count| (count == 1).then_some(Fault::Status(500))));
    for number in 0..250 {
        server.objects(|objects| {
            objects.put(&format!("bucket/root/c/{number}"), vec![0; number]);
            objects.put(&format!("bucket/root/group{number}/zarr.json"), vec![0; 2]);
            objects.put(&format!("bucket/roots/{number}"), vec![0; 2])
        });
    }
    server.objects(|objects| objects.put("bucket/root/zarr.json", vec![1; 9]));
    let adapter = adapter(&server, "bucket/root", true);
    let names = adapter.list("").unwrap();
    assert_eq!(names.len(), 252);
    assert!(names.contains(&"zarr.json".to_owned()) && names.contains(&"group249".to_owned()));
    assert_eq!(adapter.list("c").unwrap().len(), 250);
    assert_eq!(adapter.list("none").unwrap(), Vec::<String>::new());
    assert_eq!(adapter.nbytes("c").unwrap(), 249 * 250 / 2);
    let store = store(&server, "bucket/root", true);
    let below = list(&store, "", true).unwrap();
    assert_eq!((below.values.len(), below.prefixes.len()), (501, 0));
    let whole = crate::arrays::store(&server, "bucket", true);
    assert_eq!(list(&whole, "", false).unwrap().prefixes, ["root", "roots"]);
}

#[test]
fn a_web_server_has_no_lists_and_says_what_to_do() {
    let server = Server::start(well());
    let error = adapter(&server, "data", false).list("").unwrap_err();
    assert_eq!(error.kind().code(), "unsupported");
    assert!(error.to_string().contains("consolidate"), "{error}");
}
