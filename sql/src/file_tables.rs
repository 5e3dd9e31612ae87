//! Files and directories as tables by their paths.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use crate::error::{Error, Result};

/// Makes a table of a file or directory that a statement names. What of the path stands on the disk as it was written is that
/// file; otherwise `*`, `?` and `[…]` stand for what matches them.
#[derive(Debug, Default)]
pub(crate) struct FileTables {
    inner: DynamicListTableFactory,
}

impl FileTables {
    /// The same context, which looks for tables that its catalogs do not have among files.
    pub(crate) fn enable(context: SessionContext) -> SessionContext {
        let factory = Arc::new(Self::default());
        let catalogs = Arc::clone(context.state().catalog_list());
        let with_files = DynamicFileCatalog::new(catalogs, Arc::clone(&factory) as Arc<dyn UrlTableFactory>);
        let id = context.session_id();
        let state = context.into_state_builder().with_session_id(id).with_catalog_list(Arc::new(with_files));
        let context: SessionContext = state.build().into();
        factory.inner.session_store().with_state(context.state_weak_ref());
        context
    }
}

#[async_trait]
impl UrlTableFactory for FileTables {
    async fn try_new(&self, path: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        let table = self.inner.try_new(&literal(path)).await?;
        let is_path = path.contains(['/', '.']);
        if table.is_none() && is_path && Path::new(path).exists() {
            return Err(Error::UnknownFormat { path: path.to_owned() }.into());
        }
        Ok(table)
    }
}

/// The path so that DataFusion takes it as it stands, if there is such a file.
pub(crate) fn literal(path: &str) -> Cow<'_, str> {
    if !path.contains(['*', '?', '[']) || !Path::new(path).exists() {
        return Cow::Borrowed(path);
    }
    let Ok(absolute) = std::path::absolute(path) else { return Cow::Borrowed(path) };
    let mut url = String::from("file://");
    for byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                url.push(char::from(*byte))
            }
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    if absolute.is_dir() && !url.ends_with('/') {
        url.push('/');
    }
    Cow::Owned(url)
}

/// An error if there is nothing at a location that a table is to be made of.
pub(crate) async fn check_location(state: &SessionState, location: &str) -> Result<()> {
    let missing = || Error::UnknownFile { path: location.to_owned() };
    let url = ListingTableUrl::parse(&*literal(location))?;
    if url.scheme() != "file" {
        return Ok(());
    }
    let store = state.runtime_env().object_store(url.object_store())?;
    let mut files = url.list_all_files(state, &*store, "").await?;
    match files.next().await {
        Some(_) => Ok(()),
        None => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_there_is_no_pattern() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("a[1] ü.csv");
        std::fs::write(&file, "a\n1\n").expect("written");
        let path = file.to_str().expect("UTF-8");
        let expected = format!("file://{}/a%5B1%5D%20%C3%BC.csv", directory.path().display());
        assert_eq!(literal(path), expected);
        let pattern = directory.path().join("*.csv");
        assert_eq!(literal(pattern.to_str().expect("UTF-8")), pattern.to_str().expect("UTF-8"));
        assert_eq!(literal("flights.csv"), "flights.csv");
    }
}
