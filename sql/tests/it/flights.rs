//! The year of flights: SQL over the topic gives what DataFusion gives on the CSV.

use std::io::Read;

use crate::ground::{Ground, check, data, lines, lines_and_summary, run};

/// Flights per carrier, from the data set's description.
pub const PER_CARRIER: [(&str, i64); 16] = [
    ("9E", 18460),
    ("AA", 32729),
    ("AS", 714),
    ("B6", 54635),
    ("DL", 48110),
    ("EV", 54173),
    ("F9", 685),
    ("FL", 3260),
    ("HA", 342),
    ("MQ", 26397),
    ("OO", 32),
    ("UA", 58665),
    ("US", 20536),
    ("VX", 5162),
    ("WN", 12275),
    ("YV", 601),
];

/// Queries with `{flights}` for the table; what their rows are does not depend on the order of the input.
const QUERIES: [&str; 9] = [
    "SELECT count(*), count(dep_delay), count(tailnum), sum(distance), min(arr_delay), max(arr_delay)
     FROM {flights}",
    "SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM {flights} GROUP BY carrier ORDER BY carrier",
    "SELECT origin, month, count(*), min(air_time), avg(distance), sum(dep_delay) FROM {flights}
     WHERE dep_delay > 30 GROUP BY origin, month ORDER BY origin, month",
    "SELECT count(*) FROM {flights} WHERE dep_delay IS NULL OR tailnum IS NULL",
    "SELECT date_trunc('day', CAST(time_hour AS TIMESTAMP)) AS utc_day, origin, count(*) FROM {flights}
     GROUP BY utc_day, origin ORDER BY 3 DESC, 1, 2 LIMIT 20",
    "SELECT a.name, count(*), round(avg(f.dep_delay), 4) FROM {flights} f JOIN airlines a USING (carrier)
     GROUP BY a.name ORDER BY a.name",
    "SELECT carrier, month, flights, sum(flights) OVER (PARTITION BY carrier ORDER BY month) AS so_far FROM
     (SELECT carrier, month, count(*) AS flights FROM {flights} GROUP BY carrier, month) ORDER BY carrier, month",
    "SELECT count(DISTINCT tailnum), count(DISTINCT dest), approx_distinct(carrier) FROM {flights}",
    // Every row, every column.
    "SELECT * EXCLUDE (time_hour), CAST(time_hour AS TIMESTAMP) AS scheduled FROM {flights}
     ORDER BY scheduled, carrier, flight, origin, dest, tailnum, sched_dep_time, dep_time, arr_time",
];

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_those_of_datafusion_on_the_csv() {
    let ground = Ground::new().await;
    ground.load_flights("flights").await;
    let csv = ground.path("flights.csv");
    let mut text = String::new();
    let mut file = thalweg_connectors::files::open(Some(&data("flights.csv.zst"))).expect("it is there");
    file.read_to_string(&mut text).expect("it is whole");
    std::fs::write(&csv, &text).expect("there is room");

    let session = ground.session();
    let create = format!(
        "CREATE EXTERNAL TABLE on_file STORED AS CSV LOCATION '{}'
         OPTIONS ('format.has_header' 'true', 'format.null_regex' '^NA$');
         CREATE VIEW airlines AS SELECT * FROM '{}'",
        csv.display(),
        data("airlines.csv").display()
    );
    run(&session, &create).await;
    for query in QUERIES {
        let expected = lines(&session, &query.replace("{flights}", "on_file")).await;
        let (rows, summary) = lines_and_summary(&session, &query.replace("{flights}", "flights")).await;
        assert!(!expected.is_empty() && rows == expected, "{query}\n{:?}", difference(&rows, &expected));
        assert_eq!(summary.undecodable.count, 0);
        assert_eq!(summary.notices.len(), 1, "the columns were inferred");
    }

    let per_carrier = PER_CARRIER.map(|(carrier, flights)| format!("{carrier},{flights}"));
    let per_carrier: Vec<&str> = per_carrier.iter().map(String::as_str).collect();
    let sql = "SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY carrier";
    check(&session, sql, &per_carrier).await;
    let sql = "SELECT round(avg(dep_delay), 4) FROM flights WHERE carrier = 'UA'";
    check(&session, sql, &["12.1061"]).await;
    let sql = "SELECT count(*), count(DISTINCT _partition), min(_timestamp), max(_timestamp) FROM flights
               WHERE _key IS NOT NULL";
    let all = "334264,4,2013-01-01T10:00:00Z,2014-01-01T04:00:00Z";
    check(&session, sql, &[all]).await;

    let target = ground.path("parquet");
    run(&session, &format!("COPY flights TO '{}' (FORMAT parquet)", target.display())).await;
    let sql = format!(
        "SELECT count(*) FROM (SELECT * FROM flights EXCEPT ALL SELECT * FROM '{}/')",
        target.display()
    );
    check(&session, &sql, &["0"]).await;
    let sql = format!("SELECT count(*), sum(distance), sum(dep_delay) FROM '{}/'", target.display());
    check(&session, &sql, &["336776,350217607,4152200"]).await;
}

/// The first line that differs.
fn difference(rows: &[String], expected: &[String]) -> Option<(usize, Option<String>, Option<String>)> {
    let at = (0..rows.len().max(expected.len())).find(|at| rows.get(*at) != expected.get(*at))?;
    Some((at, rows.get(at).cloned(), expected.get(at).cloned()))
}
