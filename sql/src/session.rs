//! A session: where statements are run.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::{CatalogProviderList, MemoryCatalogProviderList, SchemaProvider};
use datafusion::common::{DataFusionError, TableReference};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{
    CreateExternalTable, DdlStatement, LogicalPlan, Statement as PlannedStatement,
};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast::{CreateTable, Statement as SqlStatement, TableObject};
use futures::future::BoxFuture;
use thalweg_client::Client;

use crate::catalog::{CATALOG, LogCatalog, LogSchema, SCHEMA};
use crate::config::SqlConfig;
use crate::copy::copy;
use crate::csv_table::CsvTableFactory;
use crate::ddl::declared;
use crate::error::{Error, Result};
use crate::file_tables::{FileTables, check_location, literal};
use crate::format::{Origin, TableDefinition};
use crate::outcome::{Created, Outcome, Rows};
use crate::parser::{Copy, Parsed, Statement, normalized, parse};
use crate::rewrites::hide_columns;
use crate::similar::similar;
use crate::statement_context::StatementContext;
use crate::undecodable::Undecodable;

/// Runs SQL over the topics of a cluster and over files.
///
/// Every topic is a table; `CREATE TABLE … WITH (topic = '…')` declares its columns, otherwise they are inferred
/// from its first records. A query reads each topic up to the last stable offsets that stood when the statement
/// began, the same ones wherever the statement names the topic. A file is a table by its path in single quotes.
pub struct Session {
    context: SessionContext,
    schema: Arc<LogSchema>,
    config: SqlConfig,
}

impl Session {
    /// A session with the defaults of [`SqlConfig`].
    pub fn new(client: Client) -> Self {
        Self::with_config(client, SqlConfig::default())
    }

    /// A session.
    pub fn with_config(client: Client, config: SqlConfig) -> Self {
        let schema = Arc::new(LogSchema::new(client, config.clone()));
        let mut settings = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_create_default_catalog_and_schema(false)
            .with_information_schema(true);
        let parser = &mut settings.options_mut().sql_parser;
        // So that errors have positions.
        parser.collect_spans = true;
        // The text of topics is Utf8: literals need no cast then.
        parser.map_string_types_to_utf8view = false;
        let catalogs = MemoryCatalogProviderList::new();
        catalogs.register_catalog(CATALOG.to_owned(), Arc::new(LogCatalog::new(Arc::clone(&schema))));
        let state = SessionStateBuilder::new()
            .with_config(settings)
            .with_catalog_list(Arc::new(catalogs))
            .with_default_features()
            .with_table_factory("CSV".to_owned(), Arc::new(CsvTableFactory::new()))
            .build();
        let context = FileTables::enable(SessionContext::new_with_state(state));
        Self { context, schema, config }
    }

    /// DataFusion's context with the log's catalog in it, for use within a program: topics are tables there too.
    ///
    /// What it lacks is what [`run`](Self::run) adds: `*` names the hidden columns, each scan takes its own end
    /// offsets, and records that do not decode are left out without a report (they are among the metrics of the
    /// plan).
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Parses statements that are separated by semicolons.
    ///
    /// # Errors
    /// [`Error::Syntax`], with its position.
    pub fn parse(&self, sql: &str) -> Result<Vec<Statement>> {
        let limit = self.context.state().config().options().sql_parser.recursion_limit.get();
        parse(sql, limit)
    }

    /// Runs statements one after the other, and returns the outcome of the last; the rows of those before are not
    /// waited for. An empty text is [`Outcome::Done`].
    ///
    /// # Errors
    /// That of the first statement that fails; none behind it is run. A syntax error anywhere runs nothing.
    pub async fn execute(&self, sql: &str) -> Result<Outcome> {
        let mut outcome = Outcome::Done;
        for statement in self.parse(sql)? {
            outcome = self.run(statement).await?;
        }
        Ok(outcome)
    }

    /// Runs a statement. The rows of a query are computed as they are taken; everything else is done when this
    /// returns.
    ///
    /// # Errors
    /// By variant: what is wrong with the statement, or what kept it from being run.
    pub async fn run(&self, statement: Statement) -> Result<Outcome> {
        self.run_boxed(statement).await
    }

    /// What an async function does is compiled where it is waited for. Boxed, it is compiled here, so that DataFusion's
    /// planner is not compiled again for every program.
    #[inline(never)]
    fn run_boxed(&self, statement: Statement) -> BoxFuture<'_, Result<Outcome>> {
        Box::pin(async move {
            match statement.0 {
                Parsed::CreateTable(create) => self.create_table(&create).await,
                Parsed::Copy(parsed) => self.copy(parsed).await,
                Parsed::Other(statement) => self.run_other(*statement).await,
            }
        })
    }

    async fn copy(&self, Copy { query, directory }: Copy) -> Result<Outcome> {
        let (state, context) = self.statement_state();
        let query = DataFusionStatement::Statement(Box::new(SqlStatement::Query(query)));
        let plan = self.plan(&state, query).await?;
        let rows = rows(&state, &plan, context).await?;
        copy(rows, Path::new(&directory), self.config.rows_per_file).await.map(Outcome::Written)
    }

    /// The session's state with a context of the statement's own in it.
    fn statement_state(&self) -> (SessionState, Arc<StatementContext>) {
        let context = Arc::new(StatementContext::new(self.config.undecodable_shown));
        let mut state = self.context.state();
        state.config_mut().set_extension(Arc::clone(&context));
        (state, context)
    }

    async fn run_other(&self, mut statement: DataFusionStatement) -> Result<Outcome> {
        check_supported(&statement)?;
        self.check_inserted(&statement).await?;
        let (state, context) = self.statement_state();
        if is_about_tables(&statement) {
            // The list that DataFusion takes is of the topics that are known.
            self.schema.names().await?;
            // Its own form lists the tables that describe tables, too.
            let dialect = state.config().options().sql_parser.dialect;
            statement = state.sql_to_statement(OWN_TABLES, &dialect)?;
        }
        match self.plan(&state, statement).await? {
            LogicalPlan::Ddl(mut ddl) => {
                self.check_dropped(&ddl).await?;
                if let DdlStatement::CreateExternalTable(create) = &mut ddl {
                    locate(&state, create).await?;
                }
                let name = created_name(&ddl);
                let run = SessionContext::new_with_state(state);
                run.execute_logical_plan(LogicalPlan::Ddl(ddl)).await?;
                Ok(match name {
                    Some(name) => {
                        Outcome::Created(Created { name, undecodable: context.undecodable.report() })
                    }
                    None => Outcome::Done,
                })
            }
            // What changes the session's own state, or is kept in it.
            LogicalPlan::Statement(planned) => {
                let is_query = matches!(planned, PlannedStatement::Execute(_));
                let frame = self.context.execute_logical_plan(LogicalPlan::Statement(planned)).await?;
                if !is_query {
                    return Ok(Outcome::Done);
                }
                let (_, plan) = frame.into_parts();
                rows(&state, &plan, context).await.map(Outcome::Rows)
            }
            plan => rows(&state, &plan, context).await.map(Outcome::Rows),
        }
    }

    async fn plan(&self, state: &SessionState, mut statement: DataFusionStatement) -> Result<LogicalPlan> {
        let references = state.resolve_table_references(&statement)?;
        let mut topics = HashSet::new();
        for reference in &references {
            if let Some(name) = own_table(reference)
                && self.schema.is_topic(name).await?
            {
                topics.insert(reference.clone());
            }
        }
        hide_columns(&mut statement, &topics)?;
        match state.statement_to_plan(statement).await {
            Ok(plan) => Ok(plan),
            Err(error) => Err(self.unknown_table(&references, &error).await?.unwrap_or_else(|| error.into())),
        }
    }

    /// Finds out whether planning failed because there is no such table, and which name was meant.
    async fn unknown_table(
        &self,
        references: &[TableReference],
        error: &DataFusionError,
    ) -> Result<Option<Error>> {
        let said = error.to_string();
        if !said.contains("not found") {
            return Ok(None);
        }
        for reference in references.iter().filter(|reference| own_table(reference).is_none()) {
            // A dot in the name of a topic, where SQL reads a schema and a table.
            let topic = reference.to_string();
            if self.schema.has_topic(&topic).await? {
                return Ok(Some(Error::UnknownTable { similar: Some(format!("\"{topic}\"")), name: topic }));
            }
        }
        for name in references.iter().filter_map(own_table).filter(|name| said.contains(*name)) {
            if self.schema.is_table(name).await? {
                continue;
            }
            let is_path = name.contains('/') || Path::new(name).extension().is_some_and(is_file_format);
            if is_path {
                return Ok(Some(Error::UnknownFile { path: name.to_owned() }));
            }
            return self.no_such_table(name).await.map(Some);
        }
        Ok(None)
    }

    /// An error where a statement inserts into a topic.
    async fn check_inserted(&self, statement: &DataFusionStatement) -> Result<()> {
        let DataFusionStatement::Statement(statement) = statement else { return Ok(()) };
        let SqlStatement::Insert(insert) = &**statement else { return Ok(()) };
        let TableObject::TableName(name) = &insert.table else { return Ok(()) };
        let Some(name) = name.0.last().and_then(|part| part.as_ident()).map(normalized) else {
            return Ok(());
        };
        match self.schema.is_topic(&name).await? {
            true => Err(Error::Unsupported {
                what: "INSERT INTO a topic",
                instead: "`thalweg produce TOPIC` writes records, and COPY (query) TO 'directory' the rows of a query as Parquet",
            }),
            false => Ok(()),
        }
    }

    /// An error where a statement drops what is not there, or is a topic.
    async fn check_dropped(&self, ddl: &DdlStatement) -> Result<()> {
        let (name, if_exists) = match ddl {
            DdlStatement::DropTable(drop) => (&drop.name, drop.if_exists),
            DdlStatement::DropView(drop) => (&drop.name, drop.if_exists),
            _ => return Ok(()),
        };
        let Some(name) = own_table(name).filter(|name| !self.schema.table_exist(name)) else { return Ok(()) };
        if self.schema.has_topic(name).await? {
            return Err(Error::Unsupported {
                what: "dropping a topic",
                instead: "`thalweg topic delete NAME` deletes it with all its records",
            });
        }
        if if_exists { Ok(()) } else { Err(self.no_such_table(name).await?) }
    }

    async fn no_such_table(&self, name: &str) -> Result<Error> {
        let names = self.schema.names().await?;
        let similar = similar(name, names.iter().map(String::as_str));
        Ok(Error::UnknownTable { name: name.to_owned(), similar })
    }

    async fn create_table(&self, create: &CreateTable) -> Result<Outcome> {
        let declared = declared(create)?;
        let created =
            Outcome::Created(Created { name: declared.table.clone(), undecodable: Undecodable::default() });
        let is_there = self.schema.table_exist(&declared.table);
        if is_there && declared.if_not_exists {
            return Ok(created);
        }
        if is_there && !declared.or_replace {
            return Err(Error::Definition {
                table: declared.table,
                reason: "it exists already; CREATE OR REPLACE TABLE replaces it".to_owned(),
            });
        }
        if !self.schema.has_topic(&declared.topic).await? {
            return Err(self.no_such_table(&declared.topic).await?);
        }
        let topic = declared.topic.into();
        let key = match declared.key {
            Some(key) => key,
            None => self.schema.sample(&topic).await?.key_format(),
        };
        let table = self.schema.topic_table(TableDefinition {
            topic,
            format: declared.format,
            key,
            columns: declared.columns,
            origin: Origin::Declared,
        });
        self.schema.deregister_table(&declared.table)?;
        self.schema.register_table(declared.table, Arc::new(table))?;
        Ok(created)
    }
}

/// Begins a query.
async fn rows(state: &SessionState, plan: &LogicalPlan, context: Arc<StatementContext>) -> Result<Rows> {
    let plan = state.create_physical_plan(plan).await?;
    Ok(Rows::new(execute_stream(plan, state.task_ctx())?, context))
}

/// Has the files of an external table be found as they are named, or says that they are not there.
async fn locate(state: &SessionState, create: &mut CreateExternalTable) -> Result<()> {
    // A directory that is not there yet may be written into, if it is known what it is to hold.
    let is_new = |location: &str| location.ends_with('/') && !create.schema.fields().is_empty();
    for location in create.locations.iter().filter(|location| !is_new(location)) {
        check_location(state, location).await?;
    }
    for location in &mut create.locations {
        *location = literal(location).into_owned();
    }
    Ok(())
}

/// The name of a reference, if it is in the log's schema.
fn own_table(reference: &TableReference) -> Option<&str> {
    let is_own = reference.schema().is_none_or(|schema| schema == SCHEMA)
        && reference.catalog().is_none_or(|catalog| catalog == CATALOG);
    is_own.then(|| reference.table())
}

fn is_file_format(extension: &std::ffi::OsStr) -> bool {
    ["csv", "parquet", "json", "ndjson", "arrow"].iter().any(|format| extension.eq_ignore_ascii_case(format))
}

fn check_supported(statement: &DataFusionStatement) -> Result<()> {
    match statement {
        DataFusionStatement::Explain(explain) => match &*explain.statement {
            DataFusionStatement::CopyTo(_) => {
                Err(Error::Unsupported { what: "EXPLAIN COPY", instead: "explain the query that is copied" })
            }
            inner => check_supported(inner),
        },
        DataFusionStatement::CopyTo(_) => Err(Error::Unsupported {
            what: "this form of COPY",
            instead: "write COPY (query) TO 'directory' (FORMAT parquet)",
        }),
        _ => Ok(()),
    }
}

/// What `SHOW TABLES` stands for.
const OWN_TABLES: &str = "SELECT table_name, table_type FROM information_schema.tables \
                          WHERE table_schema = 'public' ORDER BY table_name";

/// Whether a statement lists the tables that there are.
fn is_about_tables(statement: &DataFusionStatement) -> bool {
    matches!(statement, DataFusionStatement::Statement(statement)
        if statement.to_string() == "SHOW TABLES")
}

fn created_name(ddl: &DdlStatement) -> Option<String> {
    Some(match ddl {
        DdlStatement::CreateExternalTable(create) => create.name.table().to_owned(),
        DdlStatement::CreateMemoryTable(create) => create.name.table().to_owned(),
        DdlStatement::CreateView(create) => create.name.table().to_owned(),
        _ => return None,
    })
}
