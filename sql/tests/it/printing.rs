//! Outcomes as tables, CSV, TSV and JSON lines.

use std::time::Instant;

use thalweg_sql::Session;
use thalweg_sql::output::{Format, print};

use crate::ground::Ground;

async fn printed(session: &Session, sql: &str, format: Format) -> (String, String) {
    let outcome = session.execute(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut out = Vec::new();
    let summary = print(outcome, format, &mut out, Instant::now()).await.expect("it is printed").to_string();
    let (summary, elapsed) = summary.rsplit_once(" in ").expect("the time is told");
    assert!(elapsed.ends_with(" s"), "{elapsed}");
    (String::from_utf8(out).expect("UTF-8"), summary.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_printed_in_each_format() {
    let ground = Ground::new().await;
    let session = ground.session();
    let sql = "SELECT * FROM (VALUES (1, 'a,b', 1.5), (2, NULL, NULL)) AS t (n, text, x), (VALUES ([1, 2])) AS l (list)
               ORDER BY n";
    let cases = [
        (
            Format::Table,
            "+---+------+-----+--------+\n\
             | n | text | x   | list   |\n\
             +---+------+-----+--------+\n\
             | 1 | a,b  | 1.5 | [1, 2] |\n\
             | 2 |      |     | [1, 2] |\n\
             +---+------+-----+--------+\n",
        ),
        (Format::Csv, "n,text,x,list\n1,\"a,b\",1.5,\"[1, 2]\"\n2,,,\"[1, 2]\"\n"),
        (Format::Tsv, "n\ttext\tx\tlist\n1\ta,b\t1.5\t[1, 2]\n2\t\t\t[1, 2]\n"),
        (
            Format::Json,
            "{\"n\":1,\"text\":\"a,b\",\"x\":1.5,\"list\":[1,2]}\n{\"n\":2,\"text\":null,\"x\":null,\"list\":[1,2]}\n",
        ),
    ];
    for (format, expected) in cases {
        assert_eq!(printed(&session, sql, format).await, (expected.to_owned(), "2 rows".to_owned()));
    }
    let (out, summary) = printed(&session, "SELECT 1 AS one WHERE false", Format::Csv).await;
    assert_eq!((out.as_str(), summary.as_str()), ("one\n", "0 rows"));
    let (out, summary) = printed(&session, "SELECT 1 AS one WHERE false", Format::Table).await;
    assert_eq!((out.as_str(), summary.as_str()), ("+-----+\n| one |\n+-----+\n+-----+\n", "0 rows"));
    let (out, summary) = printed(&session, "CREATE VIEW v AS SELECT 1", Format::Table).await;
    assert_eq!((out.as_str(), summary.as_str()), ("", "created v"));
    let (out, summary) = printed(&session, "DROP VIEW v", Format::Table).await;
    assert_eq!((out.as_str(), summary.as_str()), ("", "done"));
    let copy = format!("COPY (SELECT 1) TO '{}'", ground.path("out").display());
    let (out, summary) = printed(&session, &copy, Format::Table).await;
    assert!(out.is_empty() && summary.starts_with("wrote 1 row to 1 file ("), "{summary}");
    let (out, summary) = printed(&session, "SELECT * FROM generate_series(1, 20000)", Format::Table).await;
    assert_eq!(
        (out.lines().count(), summary.as_str()),
        (10_004, "20000 rows, of which the first 10000 are shown")
    );
}
