//! How the examples find the log: they say where they look, and do not look for long.

use thalweg_client::{Client, ClientConfig, Error};

/// How long somebody has to answer, in ms.
const PATIENCE_MS: u64 = 5_000;

/// Connects to the brokers at `bootstrap`.
///
/// # Errors
/// When none answers soon.
pub async fn connect(bootstrap: &str) -> Result<Client, Error> {
    eprintln!("connecting to {bootstrap}");
    let config = ClientConfig::with_bootstrap(bootstrap);
    // Only the first try has so little time: what comes behind it may wait for a broker that starts again.
    let first =
        ClientConfig { api_timeout_ms: PATIENCE_MS, request_timeout_ms: PATIENCE_MS, ..config.clone() };
    if let Err(error) = Client::connect(first).await {
        eprintln!(
            "nobody answers there: `thalweg serve` starts a node, and the first argument is where one is, HOST:PORT"
        );
        return Err(error);
    }
    Client::connect(config).await
}
