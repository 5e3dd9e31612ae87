use arrow::array::{Array, AsArray};
use arrow::datatypes::TimeUnit;
use arrow::datatypes::{
    Date32Type, Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType,
};

use super::*;

fn columns(types: &[(&str, ColumnType)]) -> Vec<Column> {
    types.iter().map(|(name, column_type)| Column::new(*name, *column_type)).collect()
}

const TIMESTAMP: ColumnType = ColumnType::Timestamp { unit: TimeUnit::Microsecond, is_utc: false };

#[test]
fn objects_become_rows() {
    let columns = columns(&[("a", ColumnType::BigInt), ("b", ColumnType::Text), ("c", ColumnType::Double)]);
    let mut decoder = JsonDecoder::new(&columns, |_| true);
    for value in [
        r#"{"a":1,"b":"x","c":2.5}"#,
        r#" { "c" : 3 , "unknown" : [1, {"a": 7}] , "b" : null } "#,
        r#"{"b":"\u00e9\n","b":"last","a":9223372036854775807}"#,
        r#"{"b":{"k": [1]},"c":-0.5e2}"#,
        r#"{"\u0061":4,"b":true}"#,
    ] {
        decoder.push(value.as_bytes()).expect(value);
    }
    let built: Vec<ArrayRef> = decoder.finish().into_iter().map(|array| array.expect("wanted")).collect();
    let a: Vec<_> = built[0].as_primitive::<Int64Type>().iter().collect();
    assert_eq!(a, [Some(1), None, Some(i64::MAX), None, Some(4)]);
    let b: Vec<_> = built[1].as_string::<i32>().iter().collect();
    assert_eq!(b, [Some("x"), None, Some("last"), Some(r#"{"k": [1]}"#), Some("true")]);
    let c: Vec<_> = built[2].as_primitive::<Float64Type>().iter().collect();
    assert_eq!(c, [Some(2.5), Some(3.0), None, Some(-50.0), None]);
}

#[test]
fn whether_a_record_decodes_does_not_depend_on_what_is_wanted() {
    let all = columns(&[
        ("bool", ColumnType::Boolean),
        ("tiny", ColumnType::TinyInt),
        ("int", ColumnType::Int),
        ("big", ColumnType::BigInt),
        ("double", ColumnType::Double),
        ("decimal", ColumnType::Decimal { precision: 5, scale: 2 }),
        ("date", ColumnType::Date),
        ("time", TIMESTAMP),
        ("text", ColumnType::Text),
    ]);
    let values = [
        r#"{}"#,
        r#"{"bool":1}"#,
        r#"{"bool":"true"}"#,
        r#"{"tiny":127}"#,
        r#"{"tiny":128}"#,
        r#"{"int":1.0}"#,
        r#"{"int":"1"}"#,
        r#"{"big":9223372036854775808}"#,
        r#"{"double":"1"}"#,
        r#"{"double":1e400}"#,
        r#"{"decimal":"12.34"}"#,
        r#"{"decimal":12345.6}"#,
        r#"{"date":"2013-02-29"}"#,
        r#"{"date":"2013-02-28"}"#,
        r#"{"time":"2013-01-01T05:00:00Z"}"#,
        r#"{"time":"yesterday"}"#,
        r#"{"time":[1]}"#,
        r#"{"text":[1]}"#,
        r#"{"text":"\ud800"}"#,
        r#"{"unknown":[1,]}"#,
        r#"[1]"#,
        r#"{"int":1}x"#,
        r#""#,
    ];
    let verdicts = |is_wanted: &dyn Fn(usize) -> bool| {
        let mut decoder = JsonDecoder::new(&all, is_wanted);
        let verdicts: Vec<_> = values.iter().map(|value| decoder.push(value.as_bytes())).collect();
        let rows = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
        for array in decoder.finish().into_iter().flatten() {
            assert_eq!(array.len(), rows);
        }
        verdicts
    };
    let expected = verdicts(&|_| true);
    assert_eq!(expected, verdicts(&|_| false));
    for only in 0..all.len() {
        assert_eq!(expected, verdicts(&|at| at == only));
    }
    let good: Vec<&str> = values
        .iter()
        .zip(&expected)
        .filter(|(_, verdict)| verdict.is_ok())
        .map(|(value, _)| *value)
        .collect();
    let decoding = [0, 3, 9, 10, 13, 14, 17].map(|at| values[at]);
    assert_eq!(good, decoding);
}

#[test]
fn types_of_sql_take_their_values() {
    let columns = columns(&[
        ("int", ColumnType::Int),
        ("decimal", ColumnType::Decimal { precision: 10, scale: 2 }),
        ("date", ColumnType::Date),
        ("time", TIMESTAMP),
    ]);
    let mut decoder = JsonDecoder::new(&columns, |_| true);
    let rows = [
        r#"{"int":-5,"decimal":12.34,"date":"1970-01-11","time":"1970-01-01T00:00:01.5Z"}"#,
        r#"{"decimal":"7","time":1500}"#,
        r#"{"time":"1970-01-01 00:00:02"}"#,
    ];
    for row in rows {
        decoder.push(row.as_bytes()).expect(row);
    }
    let built: Vec<ArrayRef> = decoder.finish().into_iter().flatten().collect();
    assert_eq!(built[0].as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(-5), None, None]);
    let decimals = built[1].as_primitive::<Decimal128Type>();
    assert_eq!(decimals.iter().collect::<Vec<_>>(), [Some(1234), Some(700), None]);
    assert_eq!(built[2].as_primitive::<Date32Type>().iter().collect::<Vec<_>>(), [Some(10), None, None]);
    let times = built[3].as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.iter().collect::<Vec<_>>(), [Some(1_500_000), Some(1_500_000), Some(2_000_000)]);
}

#[test]
fn a_column_that_must_not_be_null_is_there() {
    let mut columns = columns(&[("a", ColumnType::BigInt), ("b", ColumnType::BigInt)]);
    columns[1].is_nullable = false;
    let mut decoder = JsonDecoder::new(&columns, |at| at == 0);
    assert_eq!(decoder.push(br#"{"a":1}"#), Err(DecodeError::Missing { column: 1 }));
    assert_eq!(decoder.push(br#"{"a":2,"b":null}"#), Err(DecodeError::Missing { column: 1 }));
    assert_eq!(decoder.push(br#"{"a":3,"b":0}"#), Ok(()));
    let built: Vec<_> = decoder.finish().into_iter().flatten().collect();
    assert_eq!(built[0].as_primitive::<Int64Type>().values(), &[3]);
}

#[test]
fn a_mismatch_shows_the_value() {
    let columns = columns(&[("a", ColumnType::BigInt)]);
    let mut decoder = JsonDecoder::new(&columns, |_| true);
    let value = br#"{"a":"12"}"#;
    let Err(DecodeError::Mismatch { column: 0, start, end }) = decoder.push(value) else {
        panic!("a string is no BIGINT")
    };
    assert_eq!(&value[start..end], br#""12""#);
}
