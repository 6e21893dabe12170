//! Every failure, what its text is, and the table of them in `docs/probes.md`.
//!
//! The table is made by the test here. After a change of a text or of a case:
//!
//! ```sh
//! EVENKEEL_WRITE_DOCS=1 .ci/test -p evenkeel-probe the_table_of_texts
//! ```

mod answers;
mod case;
mod commands;
mod datagrams;
mod hostile;
mod machine;
mod peer;
mod table;
mod usual;

use self::case::{Row, run_all};
use self::table::{Page, fault};

const TEST: &str = "failures::the_table_of_texts_shows_what_each_failure_says";

#[test]
fn the_table_of_texts_shows_what_each_failure_says() {
    if machine::is_child() {
        return machine::print_rows();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let machine = std::thread::spawn(|| machine::rows(TEST));
    let mut rows: Vec<Row> = runtime.block_on(async {
        let docker = tokio::spawn(commands::docker(TEST));
        // In the order of the table; a kind's rows come together whatever the order.
        let mut rows = run_all(usual::all()).await;
        rows.extend(run_all(datagrams::all()).await);
        rows.extend(run_all(hostile::all()).await);
        rows.extend(commands::script().await);
        rows.extend(docker.await.unwrap());
        rows
    });
    rows.extend(machine.join().unwrap());
    let page = Page::read();
    let rows = page.with_absent(rows);
    page.compare(&table::render(&rows));
    let faults: Vec<String> = rows.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
