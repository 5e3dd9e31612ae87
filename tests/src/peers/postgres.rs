//! A PostgreSQL server on loopback, from the machine's own installation.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::free_port;
use crate::process::{Process, run};

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Whoever serves when root starts it, which PostgreSQL refuses to run as: Debian's `nobody` and `nogroup`.
const NOBODY: u32 = 65_534;

/// Where Debian keeps the programs, one directory for each version.
const VERSIONS: &str = "/usr/lib/postgresql";

/// A running server with an empty database.
#[derive(Debug)]
pub struct Postgres {
    /// Killed when this goes out of scope.
    _process: Process,
    url: String,
    /// Its data and log; removed when this goes out of scope.
    _directory: tempfile::TempDir,
}

impl Postgres {
    /// Makes an empty data directory and serves it.
    ///
    /// # Errors
    /// When PostgreSQL is not installed or does not come up.
    pub fn start() -> anyhow::Result<Self> {
        // SAFETY: geteuid has no preconditions.
        let is_root = unsafe { libc::geteuid() } == 0;
        let directory = tempfile::tempdir()?;
        if is_root {
            chown(directory.path(), Some(NOBODY), Some(NOBODY))?;
        }
        let program = |name: &str| -> anyhow::Result<Command> {
            let mut command = Command::new(program(name)?);
            command.current_dir(directory.path());
            if is_root {
                command.uid(NOBODY).gid(NOBODY);
            }
            Ok(command)
        };
        let data = directory.path().join("data");
        let mut initdb = program("initdb")?;
        initdb.args(["--username=thalweg", "--auth=trust", "--no-sync", "--pgdata"]).arg(&data);
        run(&mut initdb)?;
        let port = free_port()?;
        let log = fs::File::create(directory.path().join("server.log"))?;
        let mut postgres = program("postgres")?;
        postgres.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-D"]).arg(&data);
        postgres.arg("-k").arg(directory.path());
        postgres.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut process = Process::spawn(&mut postgres)?;
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if begun.elapsed() > START_TIMEOUT || process.child().try_wait()?.is_some() {
                let log = fs::read_to_string(directory.path().join("server.log")).unwrap_or_default();
                bail!("PostgreSQL did not come up:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let url = format!("postgresql://thalweg@127.0.0.1:{port}/postgres");
        Ok(Self { _process: process, url, _directory: directory })
    }

    /// `postgresql://USER@HOST:PORT/DATABASE`
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The program on the PATH, or of the newest version that Debian has installed.
fn program(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join(name)).find(|at| at.is_file());
    let newest = || {
        let versions = fs::read_dir(Path::new(VERSIONS)).ok()?;
        let of = |entry: fs::DirEntry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path()));
        let (_version, path) = versions.filter_map(|entry| of(entry.ok()?)).max()?;
        Some(path.join("bin").join(name))
    };
    on_path.or_else(newest).with_context(|| format!("no {name}: scripts/setup tests installs PostgreSQL"))
}
