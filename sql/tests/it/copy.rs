//! `COPY … TO … (FORMAT parquet)`.

use std::fs;

use thalweg_sql::{Error, Outcome, SqlConfig};

use crate::ground::{Ground, check, fail, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_query_goes_to_files_and_comes_back() {
    let ground = Ground::new().await;
    let values: Vec<String> = (0..25).map(|n| format!(r#"{{"n":{n},"even":{}}}"#, n % 2 == 0)).collect();
    let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
    values.push("broken");
    ground.topic_of("t", &values).await;
    let session = ground.session_with(SqlConfig { rows_per_file: 10, ..SqlConfig::default() });
    let target = ground.path("out");
    let sql =
        format!("COPY (SELECT *, _offset FROM t WHERE n >= 2) TO '{}' (FORMAT parquet)", target.display());
    let Ok(Outcome::Written(written)) = session.execute(&sql).await else { panic!("it is written") };
    assert_eq!((written.rows, written.files.len(), written.undecodable.count), (23, 3, 1));
    let size = |path| fs::metadata(path).expect("it is there").len();
    let bytes: u64 = written.files.iter().map(|file| size(&file.path)).sum();
    assert_eq!(written.bytes, bytes);
    let sql = format!("SELECT count(*), sum(n), sum(\"_offset\") FROM '{}/' WHERE even", target.display());
    check(&session, &sql, &["12,156,156"]).await;

    let error = fail(&session, &format!("COPY t TO '{}'", target.display())).await;
    assert!(matches!(error, Error::NotEmpty { .. }), "{error}");
    // An empty directory is as good as none.
    let empty = ground.path("empty");
    fs::create_dir(&empty).expect("there is room");
    run(&session, &format!("COPY t TO '{}' STORED AS PARQUET", empty.display())).await;
    check(&session, &format!("SELECT count(*) FROM '{}/'", empty.display()), &["25"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_fails_leaves_no_files() {
    let ground = Ground::new().await;
    let values: Vec<String> = (0..100).map(|n| format!(r#"{{"n":{}}}"#, 99 - n)).collect();
    ground.topic_of("t", &values.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let config = SqlConfig { rows_per_file: 5, batch_rows: 10, ..SqlConfig::default() };
    let session = ground.session_with(config);
    run(&session, "SET datafusion.execution.batch_size = 10").await;
    let target = ground.path("out");
    let error = fail(&session, &format!("COPY (SELECT 1 / n FROM t) TO '{}'", target.display())).await;
    assert!(error.to_string().contains("ivide by zero"), "{error}");
    assert!(!target.exists());
}
