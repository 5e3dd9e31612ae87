//! Which part of a log a filter on hidden columns can be true in.
//!
//! The filters stay in the plan; bounds only say what need not be read. They err on the side of reading more.

use std::collections::BTreeSet;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, Operator, TryCast};

use crate::hidden::HiddenColumn;

/// A part of a log: all records that may satisfy a filter are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// These partitions only; `None` for all.
    pub(super) partitions: Option<BTreeSet<i32>>,
    /// No offset before this one.
    pub(super) first_offset: i64,
    /// No offset behind this one.
    pub(super) last_offset: i64,
    /// No timestamp before this one, in ms. There is no upper bound: what is early may come late, and the time
    /// index holds maxima.
    pub(super) first_timestamp: Option<i64>,
}

impl Bounds {
    /// The whole log.
    pub(super) const ALL: Self =
        Self { partitions: None, first_offset: i64::MIN, last_offset: i64::MAX, first_timestamp: None };

    /// The bounds of a conjunction of filters.
    pub(super) fn of<'e>(filters: impl IntoIterator<Item = &'e Expr>) -> Self {
        filters.into_iter().filter_map(bounds_of).fold(Self::ALL, Self::and)
    }

    /// Whether a filter bounds anything.
    pub(super) fn is_bounding(filter: &Expr) -> bool {
        bounds_of(filter).is_some_and(|bounds| bounds != Self::ALL)
    }

    fn and(self, other: Self) -> Self {
        let partitions = match (self.partitions, other.partitions) {
            (Some(ours), Some(theirs)) => Some(ours.intersection(&theirs).copied().collect()),
            (ours, theirs) => ours.or(theirs),
        };
        Self {
            partitions,
            first_offset: self.first_offset.max(other.first_offset),
            last_offset: self.last_offset.min(other.last_offset),
            first_timestamp: self.first_timestamp.max(other.first_timestamp),
        }
    }

    fn or(self, other: Self) -> Self {
        let partitions = match (self.partitions, other.partitions) {
            (Some(ours), Some(theirs)) => Some(ours.union(&theirs).copied().collect()),
            _ => None,
        };
        Self {
            partitions,
            first_offset: self.first_offset.min(other.first_offset),
            last_offset: self.last_offset.max(other.last_offset),
            // An alternative without a bound may be true at any time.
            first_timestamp: match (self.first_timestamp, other.first_timestamp) {
                (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
                _ => None,
            },
        }
    }
}

/// The bounds that a filter sets; `None` when it says nothing that is understood.
fn bounds_of(filter: &Expr) -> Option<Bounds> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            match (bounds_of(left), bounds_of(right)) {
                (Some(left), Some(right)) => Some(left.and(right)),
                (left, right) => left.or(right),
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some(bounds_of(left)?.or(bounds_of(right)?))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match (&**left, &**right) {
            (Expr::Literal(value, _), column) => compared(column, op.swap()?, value),
            (column, Expr::Literal(value, _)) => compared(column, *op, value),
            _ => None,
        },
        Expr::Between(Between { expr, negated: false, low, high }) => {
            let (Expr::Literal(low, _), Expr::Literal(high, _)) = (&**low, &**high) else { return None };
            let from = compared(expr, Operator::GtEq, low)?;
            Some(from.and(compared(expr, Operator::LtEq, high).unwrap_or(Bounds::ALL)))
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let mut alternatives = list.iter().map(|value| match value {
                Expr::Literal(value, _) => compared(expr, Operator::Eq, value),
                _ => None,
            });
            let first = alternatives.next()??;
            alternatives.try_fold(first, |all, next| Some(all.or(next?)))
        }
        _ => None,
    }
}

/// The bounds of `column op value`.
fn compared(column: &Expr, op: Operator, value: &ScalarValue) -> Option<Bounds> {
    match hidden_column(column)? {
        HiddenColumn::Partition => {
            let partition = i32::try_from(integer(value)?).ok()?;
            let partitions = (op == Operator::Eq).then(|| BTreeSet::from([partition]))?;
            Some(Bounds { partitions: Some(partitions), ..Bounds::ALL })
        }
        HiddenColumn::Offset => {
            let offset = i64::try_from(integer(value)?).ok()?;
            let (first_offset, last_offset) = match op {
                Operator::Eq => (offset, offset),
                Operator::Gt => (offset.checked_add(1)?, i64::MAX),
                Operator::GtEq => (offset, i64::MAX),
                Operator::Lt => (i64::MIN, offset.checked_sub(1)?),
                Operator::LtEq => (i64::MIN, offset),
                _ => return None,
            };
            Some(Bounds { first_offset, last_offset, ..Bounds::ALL })
        }
        HiddenColumn::Timestamp => {
            let timestamp = milliseconds(value)?;
            let is_lower = matches!(op, Operator::Eq | Operator::Gt | Operator::GtEq);
            is_lower.then_some(Bounds { first_timestamp: Some(timestamp), ..Bounds::ALL })
        }
        HiddenColumn::Key => None,
    }
}

/// The hidden column that an expression is, through casts that keep the order of its values.
fn hidden_column(expr: &Expr) -> Option<HiddenColumn> {
    match expr {
        Expr::Column(column) => HiddenColumn::of_name(&column.name),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            let column = hidden_column(expr)?;
            let keeps_order = match (column, field.data_type()) {
                (HiddenColumn::Partition, DataType::Int32 | DataType::Int64) => true,
                (HiddenColumn::Offset, DataType::Int64) => true,
                (HiddenColumn::Timestamp, DataType::Timestamp(unit, _)) => *unit != TimeUnit::Second,
                _ => false,
            };
            keeps_order.then_some(column)
        }
        _ => None,
    }
}

fn integer(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Int8(Some(value)) => (*value).into(),
        ScalarValue::Int16(Some(value)) => (*value).into(),
        ScalarValue::Int32(Some(value)) => (*value).into(),
        ScalarValue::Int64(Some(value)) => (*value).into(),
        ScalarValue::UInt8(Some(value)) => (*value).into(),
        ScalarValue::UInt16(Some(value)) => (*value).into(),
        ScalarValue::UInt32(Some(value)) => (*value).into(),
        ScalarValue::UInt64(Some(value)) => (*value).into(),
        _ => return None,
    })
}

/// A point in time as ms since 1970, rounded down.
fn milliseconds(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampSecond(Some(value), _) => value.checked_mul(1000),
        ScalarValue::TimestampMillisecond(Some(value), _) => Some(*value),
        ScalarValue::TimestampMicrosecond(Some(value), _) => Some(value.div_euclid(1000)),
        ScalarValue::TimestampNanosecond(Some(value), _) => Some(value.div_euclid(1_000_000)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    fn check(filter: Expr, expected: Option<Bounds>) {
        assert_eq!(bounds_of(&filter), expected, "{filter}");
    }

    fn offsets(first_offset: i64, last_offset: i64) -> Bounds {
        Bounds { first_offset, last_offset, ..Bounds::ALL }
    }

    fn partitions(partitions: impl IntoIterator<Item = i32>) -> Bounds {
        Bounds { partitions: Some(partitions.into_iter().collect()), ..Bounds::ALL }
    }

    fn at(milliseconds: i64) -> Expr {
        lit(ScalarValue::TimestampMillisecond(Some(milliseconds), Some("UTC".into())))
    }

    #[test]
    fn comparisons_bound_their_column() {
        let offset = || col("t._offset");
        check(offset().eq(lit(5i64)), Some(offsets(5, 5)));
        check(offset().gt(lit(5i64)), Some(offsets(6, i64::MAX)));
        check(lit(5i64).gt_eq(offset()), Some(offsets(i64::MIN, 5)));
        check(offset().between(lit(2i64), lit(7i32)), Some(offsets(2, 7)));
        check(offset().not_eq(lit(5i64)), None);
        check(offset().eq(col("a")), None);
        check(col("offset").eq(lit(5i64)), None);
        check(col("_partition").eq(lit(3)), Some(partitions([3])));
        check(col("_partition").in_list(vec![lit(0), lit(2)], false), Some(partitions([0, 2])));
        check(col("_partition").in_list(vec![lit(0)], true), None);
        check(col("_partition").gt(lit(0)), None);
    }

    #[test]
    fn a_timestamp_is_bounded_from_below_only() {
        let time = || col("_timestamp");
        let from = |timestamp| Some(Bounds { first_timestamp: Some(timestamp), ..Bounds::ALL });
        check(time().gt_eq(at(7)), from(7));
        check(time().gt(lit(ScalarValue::TimestampNanosecond(Some(7_999_999), None))), from(7));
        check(time().eq(at(7)), from(7));
        check(time().between(at(7), at(9)), from(7));
        check(time().lt(at(7)), None);
        check(time().gt_eq(at(7)).or(time().gt_eq(at(3))), from(3));
    }

    #[test]
    fn conjunctions_narrow_and_alternatives_widen() {
        let offset = || col("_offset");
        check(offset().gt_eq(lit(2i64)).and(offset().lt(lit(9i64))), Some(offsets(2, 8)));
        check(offset().gt_eq(lit(2i64)).and(col("a").eq(lit(1))), Some(offsets(2, i64::MAX)));
        check(offset().eq(lit(2i64)).or(offset().eq(lit(9i64))), Some(offsets(2, 9)));
        check(offset().eq(lit(2i64)).or(col("a").eq(lit(1))), None);
        let nothing = col("_partition").eq(lit(0)).and(col("_partition").eq(lit(1)));
        check(nothing, Some(partitions([])));
        let late = offset().eq(lit(1i64)).or(col("_timestamp").gt(at(5)));
        check(late, Some(Bounds::ALL));
    }
}
