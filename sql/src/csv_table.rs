//! CSV files in which null is spelled out, such as `NA`.
//!
//! DataFusion knows the spelling when it infers the types of a CSV file and forgets it when it reads the file. So
//! such a file is read as text, below a view that gives each column its type.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference};
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::datasource::provider_as_source;
use datafusion::datasource::view::ViewTable;
use datafusion::functions::core::expr_fn::nullif;
use datafusion::functions::regex::expr_fn::regexp_like;
use datafusion::logical_expr::{
    CreateExternalTable, Expr, LogicalPlan, LogicalPlanBuilder, TableType, cast, lit, when,
};
use datafusion::physical_plan::ExecutionPlan;

/// The option that names the spelling as it is.
const NULL_VALUE: &str = "format.null_value";
/// The option that names it by a regular expression.
const NULL_REGEX: &str = "format.null_regex";

/// Makes the tables of `CREATE EXTERNAL TABLE … STORED AS CSV`.
#[derive(Debug)]
pub(crate) struct CsvTableFactory {
    inner: ListingTableFactory,
}

impl CsvTableFactory {
    pub(crate) fn new() -> Self {
        Self { inner: ListingTableFactory::new() }
    }
}

#[async_trait]
impl TableProviderFactory for CsvTableFactory {
    async fn create(
        &self,
        session: &dyn Session,
        create: &CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        let Some(null) = Null::of(create) else { return self.inner.create(session, create).await };
        let schema = match create.schema.fields().is_empty() {
            true => {
                let mut inferred = create.clone();
                inferred.options.remove(NULL_VALUE);
                inferred.options.insert(NULL_REGEX.to_owned(), null.regex());
                self.inner.create(session, &inferred).await?.schema()
            }
            false => Arc::clone(create.schema.inner()),
        };
        let text: Vec<Field> =
            schema.fields().iter().map(|field| Field::new(field.name(), DataType::Utf8, true)).collect();
        let mut as_text = create.clone();
        as_text.options.remove(NULL_VALUE);
        as_text.options.remove(NULL_REGEX);
        as_text.schema = Arc::new(DFSchema::try_from(Schema::new(text))?);
        let table = provider_as_source(self.inner.create(session, &as_text).await?);
        let columns = schema.fields().iter().map(|field| null.typed(field)).collect::<Result<Vec<_>>>()?;
        let name = TableReference::bare(create.name.table());
        let view = LogicalPlanBuilder::scan(name, table, None)?.project(columns)?.build()?;
        Ok(Arc::new(CsvTable(ViewTable::new(view, create.definition.clone()))))
    }
}

/// The view that gives the columns their types; to whoever lists, replaces or drops tables it is a table.
#[derive(Debug)]
struct CsvTable(ViewTable);

#[async_trait]
impl TableProvider for CsvTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        self.0.get_logical_plan()
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.scan(session, projection, filters, limit).await
    }
}

/// How null is spelled.
enum Null {
    Value(String),
    Regex(String),
}

impl Null {
    fn of(create: &CreateExternalTable) -> Option<Self> {
        if let Some(value) = create.options.get(NULL_VALUE) {
            return Some(Self::Value(value.clone()));
        }
        let regex = create.options.get(NULL_REGEX)?;
        // `^NA$` is what is mostly meant; it takes no regular expression to find that.
        let literal = regex.strip_prefix('^').and_then(|regex| regex.strip_suffix('$'));
        let is_plain = |text: &&str| text.chars().all(|c| c.is_alphanumeric() || " _-/".contains(c));
        Some(match literal.filter(is_plain) {
            Some(value) => Self::Value(value.to_owned()),
            None => Self::Regex(regex.clone()),
        })
    }

    fn regex(&self) -> String {
        match self {
            Self::Value(value) => {
                let escape =
                    |c: char| if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() };
                format!("^{}$", value.chars().map(escape).collect::<String>())
            }
            Self::Regex(regex) => regex.clone(),
        }
    }

    /// The column of this field, made from its text.
    fn typed(&self, field: &Field) -> Result<Expr> {
        let text = || Expr::Column(Column::new_unqualified(field.name()));
        let known = match self {
            Self::Value(value) => nullif(text(), lit(value.as_str())),
            Self::Regex(regex) => {
                when(regexp_like(text(), lit(regex.as_str()), None), lit(ScalarValue::Utf8(None)))
                    .otherwise(text())?
            }
        };
        Ok(cast(known, field.data_type().clone()).alias(field.name()))
    }
}
