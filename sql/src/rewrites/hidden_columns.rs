//! Keeps the hidden columns of topics out of `*`.
//!
//! DataFusion has no columns that a wildcard leaves out, and expands wildcards while it plans. So the statement is
//! rewritten before: `*` over topics becomes `* EXCLUDE (_partition, …)`, and over a join of several relations
//! `a.* EXCLUDE (…), b.*`, where USING keeps naming its columns once.

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;

use datafusion::common::TableReference;
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, Query, Select, SelectFlavor, SelectItem, SelectItemQualifiedWildcardKind, TableFactor,
    TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use crate::error::{Error, Result};
use crate::hidden::HiddenColumn;
use crate::parser::normalized;

/// Rewrites the wildcards of a statement; `topics` are its references that are tables over topics.
pub(crate) fn hide_columns(
    statement: &mut DataFusionStatement,
    topics: &HashSet<TableReference>,
) -> Result<()> {
    if topics.is_empty() {
        return Ok(());
    }
    match statement {
        DataFusionStatement::Statement(statement) => {
            let mut rule = HideColumns { topics, ctes: Vec::new(), scopes: Vec::new() };
            match statement.visit(&mut rule) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(error) => Err(error),
            }
        }
        DataFusionStatement::Explain(explain) => hide_columns(&mut explain.statement, topics),
        _ => Ok(()),
    }
}

struct HideColumns<'t> {
    topics: &'t HashSet<TableReference>,
    /// The names that `WITH` gives to queries, innermost last; they hide topics.
    ctes: Vec<String>,
    /// The queries that are being visited, innermost last.
    scopes: Vec<Scope>,
}

/// A query that is being visited.
#[derive(Default)]
struct Scope {
    /// The names of its `WITH` that are not visible yet. The visitor comes to these queries first and in order, and
    /// the name of each means a topic until it is through with it.
    waiting: VecDeque<String>,
    /// How many names it has made visible.
    visible: usize,
}

impl VisitorMut for HideColumns<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let mut scope = Scope::default();
        if let Some(with) = &query.with {
            let names = with.cte_tables.iter().map(|cte| normalized(&cte.alias.name));
            if with.recursive {
                self.ctes.extend(names);
                scope.visible = with.cte_tables.len();
            } else {
                scope.waiting = names.collect();
            }
        }
        self.scopes.push(scope);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<Error> {
        let ended = self.scopes.pop().unwrap_or_default();
        self.ctes.truncate(self.ctes.len() - ended.visible);
        if let Some(outer) = self.scopes.last_mut()
            && let Some(name) = outer.waiting.pop_front()
        {
            self.ctes.push(name);
            outer.visible += 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        match self.rewrite(select) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

/// Something in a FROM clause.
struct Relation {
    /// How a qualified wildcard names it; `None` for what has no name.
    qualifier: Option<ObjectName>,
    is_topic: bool,
    /// The columns that USING takes from an earlier relation.
    shared: Vec<Ident>,
}

/// The relations of a FROM clause, in order.
#[derive(Default)]
struct Relations {
    all: Vec<Relation>,
    has_natural_join: bool,
    /// Not all relations' columns come out as they are: semi joins drop one side, and USING of outer joins from the
    /// right takes the right side's.
    is_special: bool,
}

impl HideColumns<'_> {
    fn rewrite(&self, select: &mut Select) -> Result<()> {
        let mut relations = Relations::default();
        for from in &select.from {
            self.add_tables(&mut relations, from);
        }
        if !relations.all.iter().any(|relation| relation.is_topic) {
            return Ok(());
        }
        if relations.has_natural_join {
            return Err(Error::Unsupported {
                what: "NATURAL JOIN with a topic",
                instead: "name the columns: JOIN … USING (…)",
            });
        }
        if select.flavor == SelectFlavor::FromFirstNoSelect {
            select.flavor = SelectFlavor::Standard;
            select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
        }
        let mut projection = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) => expand(options, &relations, &mut projection)?,
                SelectItem::QualifiedWildcard(kind, mut options) => {
                    if let SelectItemQualifiedWildcardKind::ObjectName(name) = &kind
                        && relations.all.iter().any(|relation| relation.is_topic && relation.is_named(name))
                    {
                        exclude(&mut options, hidden_names());
                    }
                    projection.push(SelectItem::QualifiedWildcard(kind, options));
                }
                other => projection.push(other),
            }
        }
        select.projection = projection;
        Ok(())
    }

    fn add_tables(&self, relations: &mut Relations, tables: &TableWithJoins) {
        self.add_factor(relations, &tables.relation, Vec::new());
        for Join { relation, join_operator, .. } in &tables.joins {
            let mut shared = Vec::new();
            match constraint(join_operator) {
                Some(JoinConstraint::Natural) => relations.has_natural_join = true,
                Some(JoinConstraint::Using(columns)) => {
                    relations.is_special |= is_from_the_right(join_operator);
                    shared.extend(columns.iter().filter_map(last_ident));
                }
                Some(_) => {}
                None => relations.is_special |= !matches!(join_operator, JoinOperator::CrossJoin(_)),
            }
            self.add_factor(relations, relation, shared);
        }
    }

    fn add_factor(&self, relations: &mut Relations, factor: &TableFactor, shared: Vec<Ident>) {
        let (qualifier, is_topic) = match factor {
            TableFactor::Table { name, alias, args, .. } => {
                let alias = alias.as_ref().map(|alias| ObjectName::from(vec![alias.name.clone()]));
                let own_name = args.is_none().then(|| name.clone());
                (alias.or(own_name), args.is_none() && self.is_topic(name))
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                relations.is_special |= !shared.is_empty();
                return self.add_tables(relations, table_with_joins);
            }
            TableFactor::Derived { alias: Some(alias), .. }
            | TableFactor::NestedJoin { alias: Some(alias), .. } => {
                (Some(ObjectName::from(vec![alias.name.clone()])), false)
            }
            _ => (None, false),
        };
        relations.all.push(Relation { qualifier, is_topic, shared });
    }

    fn is_topic(&self, name: &ObjectName) -> bool {
        match object_name_to_table_reference(name.clone(), true) {
            Ok(TableReference::Bare { table }) if self.ctes.iter().any(|cte| **cte == *table) => false,
            Ok(reference) => self.topics.contains(&reference),
            Err(_) => false,
        }
    }
}

impl Relation {
    /// Whether `name.*` means this relation.
    fn is_named(&self, name: &ObjectName) -> bool {
        let last = |name: &ObjectName| last_ident(name).map(|ident| normalized(&ident));
        self.qualifier.as_ref().is_some_and(|qualifier| last(qualifier) == last(name))
    }
}

/// Writes out what `*` over relations with topics among them names.
fn expand(
    mut options: WildcardAdditionalOptions,
    relations: &Relations,
    projection: &mut Vec<SelectItem>,
) -> Result<()> {
    let topics = relations.all.iter().filter(|relation| relation.is_topic).count();
    let is_plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none();
    let are_named = relations.all.iter().all(|relation| relation.qualifier.is_some());
    if relations.all.len() > 1 && is_plain && are_named && !relations.is_special {
        for relation in &relations.all {
            let Some(qualifier) = &relation.qualifier else { continue };
            let mut options = WildcardAdditionalOptions::default();
            exclude(&mut options, relation.shared.iter().cloned());
            if relation.is_topic {
                exclude(&mut options, hidden_names());
            }
            let kind = SelectItemQualifiedWildcardKind::ObjectName(qualifier.clone());
            projection.push(SelectItem::QualifiedWildcard(kind, options));
        }
        return Ok(());
    }
    if topics > 1 {
        return Err(Error::Unsupported {
            what: "this `*` over a join of several topics",
            instead: "name the columns, or write `a.*, b.*`",
        });
    }
    exclude(&mut options, hidden_names());
    projection.push(SelectItem::Wildcard(options));
    Ok(())
}

fn hidden_names() -> impl Iterator<Item = Ident> {
    HiddenColumn::ALL.into_iter().map(|column| Ident::new(column.name()))
}

/// Adds names to those that a wildcard leaves out.
fn exclude(options: &mut WildcardAdditionalOptions, names: impl IntoIterator<Item = Ident>) {
    let names = names.into_iter();
    if let Some(ExceptSelectItem { first_element, additional_elements }) = &mut options.opt_except {
        for name in names {
            let is_there = |there: &Ident| normalized(there) == name.value;
            if !is_there(first_element) && !additional_elements.iter().any(is_there) {
                additional_elements.push(name);
            }
        }
        return;
    }
    let mut all = match options.opt_exclude.take() {
        None => Vec::new(),
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
    };
    for name in names {
        let is_there = |there: &ObjectName| {
            last_ident(there).is_some_and(|there| normalized(&there) == normalized(&name))
        };
        if !all.iter().any(is_there) {
            all.push(ObjectName::from(vec![name]));
        }
    }
    options.opt_exclude = (!all.is_empty()).then_some(ExcludeSelectItem::Multiple(all));
}

fn last_ident(name: &ObjectName) -> Option<Ident> {
    name.0.last().and_then(ObjectNamePart::as_ident).cloned()
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

fn is_from_the_right(operator: &JoinOperator) -> bool {
    matches!(operator, JoinOperator::Right(_) | JoinOperator::RightOuter(_) | JoinOperator::FullOuter(_))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    /// Rewrites with topics `t`, `u` and `a.b`.
    fn rewritten(sql: &str) -> Result<String> {
        let topics = ["t", "u"].map(TableReference::bare).into_iter();
        let topics = topics.chain([TableReference::bare("a.b")]).collect();
        let mut statement = DFParser::parse_sql(sql).expect("SQL").pop_back().expect("a statement");
        hide_columns(&mut statement, &topics)?;
        Ok(statement.to_string())
    }

    const HIDDEN: &str = "EXCLUDE (_partition, _offset, _timestamp, _key)";

    #[test]
    fn wildcards_over_topics_leave_hidden_columns_out() {
        let cases = [
            ("SELECT * FROM t", "SELECT * {} FROM t"),
            ("SELECT * FROM T", "SELECT * {} FROM T"),
            ("SELECT * FROM \"a.b\"", "SELECT * {} FROM \"a.b\""),
            ("SELECT *, _offset FROM t", "SELECT * {}, _offset FROM t"),
            ("SELECT x.* FROM t AS x", "SELECT x.* {} FROM t AS x"),
            ("SELECT count(*) FROM t", "SELECT count(*) FROM t"),
            ("SELECT * FROM (SELECT * FROM t) AS s", "SELECT * FROM (SELECT * {} FROM t) AS s"),
            ("SELECT * FROM t JOIN f ON t.k = f.k", "SELECT t.* {}, f.* FROM t JOIN f ON t.k = f.k"),
            (
                "SELECT * FROM f AS a JOIN t AS b USING (k)",
                "SELECT a.*, b.* EXCLUDE (k, _partition, _offset, _timestamp, _key) \
                 FROM f AS a JOIN t AS b USING(k)",
            ),
            ("SELECT * FROM t, u", "SELECT t.* {}, u.* {} FROM t, u"),
            ("SELECT * FROM 'f.csv'", "SELECT * FROM 'f.csv'"),
            ("SELECT 1 WHERE EXISTS (SELECT * FROM t)", "SELECT 1 WHERE EXISTS (SELECT * {} FROM t)"),
            ("SELECT * FROM t UNION SELECT * FROM u", "SELECT * {} FROM t UNION SELECT * {} FROM u"),
            ("WITH t AS (SELECT * FROM t) SELECT * FROM t", "WITH t AS (SELECT * {} FROM t) SELECT * FROM t"),
            (
                "WITH t AS (SELECT 1), s AS (SELECT * FROM t) SELECT * FROM u",
                "WITH t AS (SELECT 1), s AS (SELECT * FROM t) SELECT * {} FROM u",
            ),
            (
                "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) AS s WHERE EXISTS (SELECT * FROM t)",
                "SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) AS s WHERE EXISTS (SELECT * {} FROM t)",
            ),
            (
                "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t",
                "WITH RECURSIVE t AS (SELECT 1 UNION ALL SELECT * FROM t) SELECT * FROM t",
            ),
            ("CREATE VIEW v AS SELECT * FROM t", "CREATE VIEW v AS SELECT * {} FROM t"),
            ("EXPLAIN SELECT * FROM t", "EXPLAIN SELECT * {} FROM t"),
        ];
        for (sql, expected) in cases {
            assert_eq!(rewritten(sql).expect(sql), expected.replace("{}", HIDDEN));
        }
        let sql = "SELECT * EXCLUDE (a, _key) FROM t";
        let expected = "SELECT * EXCLUDE (a, _key, _partition, _offset, _timestamp) FROM t";
        assert_eq!(rewritten(sql).expect(sql), expected);
        let sql = "SELECT * EXCEPT (a) FROM t";
        let expected = "SELECT * EXCEPT (a, _partition, _offset, _timestamp, _key) FROM t";
        assert_eq!(rewritten(sql).expect(sql), expected);
    }

    #[test]
    fn nested_names_cost_no_more_than_their_text() {
        let nested = (0..20).fold("SELECT * FROM t".to_owned(), |inner, level| {
            format!("WITH c{level} AS ({inner}) SELECT * FROM c{level}")
        });
        let before = std::time::Instant::now();
        let sql = rewritten(&nested).expect("SQL");
        assert_eq!(sql.matches(HIDDEN).count(), 1);
        assert!(before.elapsed().as_secs() < 10, "visited again and again");
    }

    #[test]
    fn what_cannot_be_rewritten_is_refused() {
        for sql in ["SELECT * FROM t NATURAL JOIN f", "SELECT * EXCLUDE (a) FROM t JOIN u ON t.k = u.k"] {
            assert!(matches!(rewritten(sql), Err(Error::Unsupported { .. })), "{sql}");
        }
    }
}
