//! The server that does no work, which speed is measured against, is taken for a server.

mod support;

use std::thread;

use support::null_server::{NullServer, PORT};
use support::pgmark_alone;

#[test]
fn every_transaction_against_a_server_without_work_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let server = NullServer::listen(directory.path()).unwrap();
    // It serves for as long as the test's process lives.
    thread::spawn(move || server.serve());
    for mode in ["simple", "extended", "prepared"] {
        let finished = pgmark_alone()
            .env("PGHOST", directory.path())
            .env("PGPORT", PORT.to_string())
            .env("PGUSER", "u")
            .script("\\set x 1\nBEGIN;\nSELECT :x;\nEND;\n")
            .args("-c 10 -t 5 -M")
            .arg(mode)
            .logged()
            .run();
        let finished = finished.expect_status(0);
        assert_eq!(finished.log().with_status("ok").count(), 50, "{mode}");
    }
}
