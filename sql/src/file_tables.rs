//! Files and directories as tables by their paths.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use futures::StreamExt;

use crate::error::{Error, Result, is_about_compression};

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
        let table = match self.inner.try_new(&literal(path)).await {
            Err(error) if is_about_compression(&error) => {
                return Err(compressed(path).map_or(error, DataFusionError::from));
            }
            table => table?,
        };
        let is_path = path.contains(['/', '.']);
        if table.is_none() && is_path && Path::new(path).exists() {
            let error = compressed(path).or_else(|| without_files(path));
            return Err(error.unwrap_or_else(|| Error::UnknownFormat { path: path.to_owned() }).into());
        }
        Ok(table)
    }
}

/// An error for a file, or a directory with one, that is compressed by its name.
fn compressed(path: &str) -> Option<Error> {
    let within =
        || entries(path).into_iter().filter(|(_, is_file)| *is_file).map(|(name, _)| in_(path, &name));
    let (path, command) = std::iter::once(path.to_owned())
        .chain(within())
        .find_map(|path| decompressing(&path).map(|command| (path, command)))?;
    Some(Error::Compressed { path, command })
}

/// What decompresses a file, by its name; `None` of one that is not compressed.
fn decompressing(path: &str) -> Option<&'static str> {
    let commands = [("gz", "gunzip -k"), ("zst", "zstd -d"), ("bz2", "bunzip2 -k"), ("xz", "unxz -k")];
    let extension = Path::new(path).extension()?;
    commands.iter().find(|(of, _)| extension.eq_ignore_ascii_case(of)).map(|(_, command)| *command)
}

/// An error for a directory without a file of its own.
fn without_files(path: &str) -> Option<Error> {
    let entries = entries(path);
    if !Path::new(path).is_dir() || entries.iter().any(|(_, is_file)| *is_file) {
        return None;
    }
    let shown = entries.iter().find(|(name, _)| !name.starts_with('.'));
    let within = shown.map(|(name, _)| format!("{}/", in_(path, name)));
    Some(Error::NoFiles { directory: path.to_owned(), within })
}

/// What is in a directory, by name, and whether it is a file; nothing of what is no directory.
fn entries(path: &str) -> Vec<(String, bool)> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    let named = entries
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_file()));
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

fn in_(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
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
    // Beside others that can be read it does not matter.
    let is_packed = |(name, is_file): &(String, bool)| !is_file || decompressing(name).is_some();
    if entries(location).iter().all(is_packed)
        && let Some(error) = compressed(location)
    {
        return Err(error);
    }
    let url = ListingTableUrl::parse(&*literal(location))?;
    if url.scheme() != "file" {
        return Ok(());
    }
    let store = state.runtime_env().object_store(url.object_store())?;
    let mut files = url.list_all_files(state, &*store, "").await?;
    match files.next().await {
        Some(_) => Ok(()),
        None => {
            Err(without_files(location).unwrap_or_else(|| Error::UnknownFile { path: location.to_owned() }))
        }
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
