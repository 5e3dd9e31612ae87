//! Cuts a text into statements: DataFusion's, and what is ours in front of them.

use std::fmt;

use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement as DataFusionStatement};
use datafusion::sql::sqlparser::ast::{
    CreateTable, CreateTableOptions, Ident, ObjectName, Query, SelectFlavor, SelectItem, SetExpr,
    Statement as SqlStatement, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::{Error, Result};

/// A statement that was parsed and can be run once, by [`Session::run`](crate::Session::run). Displays as SQL.
#[derive(Clone, Debug)]
pub struct Statement(pub(crate) Parsed);

/// What a statement is.
#[derive(Clone, Debug)]
pub(crate) enum Parsed {
    /// `CREATE TABLE name (…) WITH (topic = …)`.
    CreateTable(Box<CreateTable>),
    /// `COPY … TO 'directory' (FORMAT parquet)`.
    Copy(Copy),
    /// Anything else.
    Other(Box<DataFusionStatement>),
}

/// `COPY`: the query, and the directory that its rows go to as Parquet.
#[derive(Clone, Debug)]
pub(crate) struct Copy {
    pub(crate) query: Box<Query>,
    pub(crate) directory: String,
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Parsed::CreateTable(create) => write!(f, "{create}"),
            Parsed::Copy(Copy { query, directory }) => {
                write!(f, "COPY ({query}) TO '{}' (FORMAT parquet)", directory.replace('\'', "''"))
            }
            Parsed::Other(statement) => write!(f, "{statement}"),
        }
    }
}

/// Parses statements that are separated by semicolons.
pub(crate) fn parse(sql: &str, recursion_limit: usize) -> Result<Vec<Statement>> {
    let mut parser = DFParserBuilder::new(sql)
        .with_dialect(&GenericDialect)
        .with_recursion_limit(recursion_limit)
        .build()?;
    let mut statements = Vec::new();
    loop {
        while parser.parser.consume_token(&Token::SemiColon) {}
        if parser.parser.peek_token().token == Token::EOF {
            return Ok(statements);
        }
        statements.push(Statement(statement(&mut parser)?));
        let next = parser.parser.peek_token();
        if !matches!(next.token, Token::SemiColon | Token::EOF) {
            // EMIT may have been taken for the alias of a table.
            if is_word(&next.token, "EMIT") || is_word(&next.token, "CHANGES") {
                return Err(EMIT_CHANGES);
            }
            return parser.parser.expected("end of statement", next).map_err(from_parser);
        }
    }
}

fn from_parser(error: ParserError) -> Error {
    Error::from_datafusion(error.into())
}

fn statement(parser: &mut DFParser<'_>) -> Result<Parsed> {
    let is_copy = is_keyword(&parser.parser.peek_token().token, Keyword::COPY);
    if is_copy && !is_keyword(&parser.parser.peek_nth_token(1).token, Keyword::INTO) {
        return copy(&mut parser.parser);
    }
    if lists_topics(&mut parser.parser)? {
        let tables = DFParser::parse_sql("SHOW TABLES")?.pop_front();
        return Ok(Parsed::Other(Box::new(tables.expect("it is a statement"))));
    }
    let statement = parser.parse_statement()?;
    Ok(match statement {
        DataFusionStatement::Statement(statement) => match *statement {
            SqlStatement::CreateTable(create) if has_options(&create) => {
                Parsed::CreateTable(Box::new(create))
            }
            other => Parsed::Other(Box::new(DataFusionStatement::Statement(Box::new(other)))),
        },
        other => Parsed::Other(Box::new(other)),
    })
}

/// Takes `SHOW TOPICS`, which for us is `SHOW TABLES`.
///
/// # Errors
/// For what others have in front of a stream: to us it is a topic.
fn lists_topics(parser: &mut Parser<'_>) -> Result<bool> {
    let (first, second) = (parser.peek_token().token, parser.peek_nth_token(1).token);
    let lists = is_word(&first, "SHOW") || is_word(&first, "LIST");
    if is_word(&first, "CREATE") && is_word(&second, "STREAM") {
        return Err(Error::Unsupported {
            what: "CREATE STREAM",
            instead: "CREATE TABLE name (…) WITH (topic = 'NAME') declares the columns of a topic; the Streams API processes records as \
                      they come",
        });
    }
    if lists && (is_word(&second, "STREAMS") || is_word(&second, "QUERIES")) {
        return Err(Error::Unsupported {
            what: "a list of streams or queries",
            instead: "SHOW TABLES lists topics and tables, and `thalweg group list` the groups that read them",
        });
    }
    let found = lists && is_word(&second, "TOPICS");
    if found {
        parser.advance_token();
        parser.advance_token();
    }
    Ok(found)
}

/// What goes on for ever elsewhere.
const EMIT_CHANGES: Error = Error::Unsupported {
    what: "EMIT",
    instead: "a query ends where the topics ended when it began. `thalweg consume TOPIC` goes on with what comes, and the Streams API \
              keeps results up to date",
};

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

fn has_options(create: &CreateTable) -> bool {
    matches!(&create.table_options, CreateTableOptions::With(options) if !options.is_empty())
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword)
}

/// `COPY name | (query) TO 'directory'`, and behind it the format in one of the ways that Postgres and DataFusion
/// have for it; Parquet is the one there is.
fn copy(parser: &mut Parser<'_>) -> Result<Parsed> {
    let parsed = (|| {
        parser.expect_keyword(Keyword::COPY)?;
        let query = if parser.consume_token(&Token::LParen) {
            let query = parser.parse_query()?;
            parser.expect_token(&Token::RParen)?;
            query
        } else {
            Box::new(everything_of(parser.parse_object_name(true)?))
        };
        if is_keyword(&parser.peek_token().token, Keyword::FROM) {
            return Ok(None);
        }
        parser.expect_keyword(Keyword::TO)?;
        let directory = parser.parse_literal_string()?;
        let mut is_said = true;
        if parser.parse_keyword(Keyword::STORED) {
            parser.expect_keyword(Keyword::AS)?;
            parquet(parser)?;
        } else {
            let _ = parser.parse_keyword(Keyword::WITH);
            is_said = parser.consume_token(&Token::LParen);
            if is_said {
                parser.expect_keyword(Keyword::FORMAT)?;
                parquet(parser)?;
                parser.expect_token(&Token::RParen)?;
            }
        }
        Ok(Some((Copy { query, directory }, is_said)))
    })();
    match parsed.map_err(from_parser)? {
        Some((copy, false)) if names_another_format(&copy.directory) => Err(Error::Unsupported {
            what: "COPY … TO a CSV or JSON file",
            instead: "`COPY … TO 'DIRECTORY' (FORMAT parquet)` writes Parquet; `thalweg sql --format` and `thalweg consume` print \
                      other formats",
        }),
        Some((copy, _)) => Ok(Parsed::Copy(copy)),
        None => Err(Error::Unsupported {
            what: "COPY … FROM",
            instead: "`thalweg produce --file FILE` writes a file into a topic",
        }),
    }
}

/// Whether somebody who says no format may expect another one than Parquet.
fn names_another_format(directory: &str) -> bool {
    let name = directory.to_lowercase();
    [".csv", ".tsv", ".json", ".jsonl", ".ndjson"].iter().any(|suffix| name.ends_with(suffix))
}

/// The name of the one format that there is.
fn parquet(parser: &mut Parser<'_>) -> Result<(), ParserError> {
    let token = parser.next_token();
    let name = match &token.token {
        Token::Word(word) => word.value.as_str(),
        Token::SingleQuotedString(name) => name.as_str(),
        _ => "",
    };
    if name.eq_ignore_ascii_case("parquet") { Ok(()) } else { parser.expected("PARQUET", token) }
}

/// `SELECT * FROM name`.
fn everything_of(name: ObjectName) -> Query {
    let wildcard = SelectItem::Wildcard(Default::default());
    let relation = TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    let mut query = empty_query();
    if let SetExpr::Select(select) = &mut *query.body {
        select.flavor = SelectFlavor::Standard;
        select.projection = vec![wildcard];
        select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    }
    query
}

/// `SELECT 1`, as a shape to fill in.
fn empty_query() -> Query {
    let mut parser = Parser::new(&GenericDialect).try_with_sql("SELECT 1").expect("it is made of tokens");
    *parser.parse_query().expect("it is a query")
}

/// How an identifier reads after SQL's rule for its case.
pub(crate) fn normalized(ident: &Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str) -> Vec<String> {
        let statements = parse(sql, 50).unwrap_or_else(|error| panic!("{sql}: {error}"));
        statements.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_text_is_cut_into_statements() {
        assert_eq!(shown(";; SELECT 1 ;SELECT 2;"), ["SELECT 1", "SELECT 2"]);
        assert!(shown("  -- nothing\n").is_empty());
        let error = parse("SELECT 1 SELECT 2", 50).expect_err("no semicolon");
        assert_eq!(error.to_string(), "Expected: end of statement, found: SELECT (line 1, column 10)");
        let error = parse("SELECT 1\n  WHERE >", 50).expect_err("not SQL");
        assert!(error.to_string().ends_with("(line 2, column 9)"), "{error}");
    }

    #[test]
    fn copy_is_understood_in_the_ways_of_postgres_and_datafusion() {
        let expected = "COPY (SELECT * FROM \"a.b\") TO 'dir' (FORMAT parquet)";
        for tail in
            ["", "(FORMAT parquet)", "(format 'PARQUET')", "WITH (FORMAT parquet)", "STORED AS PARQUET"]
        {
            assert_eq!(shown(&format!("COPY \"a.b\" TO 'dir' {tail};")), [expected]);
            assert_eq!(shown(&format!("COPY (SELECT * FROM \"a.b\") TO 'dir' {tail}")), [expected]);
        }
        for refused in ["COPY t FROM 'x'", "COPY t TO 'x.csv'", "COPY t TO 'X.JSON'"] {
            assert!(matches!(parse(refused, 50), Err(Error::Unsupported { .. })), "{refused}");
        }
        assert_eq!(shown("COPY t TO 'x.csv' (FORMAT parquet)").len(), 1);
        let error = parse("COPY t TO 'x' (FORMAT csv)", 50).expect_err("only Parquet");
        assert_eq!(error.to_string(), "Expected: PARQUET, found: csv (line 1, column 23)");
    }

    #[test]
    fn what_others_have_for_streams_is_told_apart() {
        assert_eq!(shown("SHOW TOPICS; show topics; LIST TOPICS"), ["SHOW TABLES"; 3]);
        for refused in [
            "SELECT * FROM t EMIT CHANGES",
            "SELECT a, count(*) FROM t WHERE a > 1 GROUP BY a emit changes;",
            "SELECT * FROM t x EMIT FINAL",
            "SHOW STREAMS",
            "LIST QUERIES",
            "CREATE STREAM s (a INT) WITH (topic = 't')",
        ] {
            assert!(matches!(parse(refused, 50), Err(Error::Unsupported { .. })), "{refused}");
        }
        assert_eq!(shown("SELECT changes FROM emit").len(), 1);
    }

    #[test]
    fn a_table_over_a_topic_has_options() {
        let sql = "CREATE TABLE t (a BIGINT, b TIMESTAMP(3)) WITH (topic = 'x', format = 'json')";
        assert!(matches!(&parse(sql, 50).expect("SQL")[..], [Statement(Parsed::CreateTable(_))]));
        let sql = "CREATE TABLE t (a BIGINT)";
        assert!(matches!(&parse(sql, 50).expect("SQL")[..], [Statement(Parsed::Other(_))]));
    }
}
