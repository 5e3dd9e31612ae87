//! Runs a command beside a fresh Apache Kafka and a fresh PostgreSQL: `with_peers COMMAND ARGUMENTS…`.
//!
//! The command finds Kafka's address in `THALWEG_TEST_KAFKA`, in `THALWEG_KAFKA_RUN` the words that run one of Kafka's
//! classes, and in `THALWEG_TEST_POSTGRES` the database's URL. With these, the suites of the single crates look at
//! both, too.

use std::process::{Command, ExitCode};

use anyhow::Context;
use thalweg_tests::peers::kafka::{self, Kafka};
use thalweg_tests::peers::postgres::Postgres;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("with_peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().context("which command?")?;
    let (broker, database) = (Kafka::start()?, Postgres::start()?);
    let status = Command::new(&program)
        .args(arguments)
        .env("THALWEG_TEST_KAFKA", broker.address())
        .env("THALWEG_KAFKA_RUN", kafka::class_words()?.join(" "))
        .env("THALWEG_TEST_POSTGRES", database.url())
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
