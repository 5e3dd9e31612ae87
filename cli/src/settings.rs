//! Settings that commands share: from a profile in a file, from the environment, and from `-X` on the command line; what
//! comes later in this row goes before what comes earlier.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use thalweg_broker::BrokerConfig;
use thalweg_client::ClientConfig;

use crate::advice::did_you_mean;
use crate::exit::{Exit, failure};

/// The two settings that say where the log is, of which one goes.
pub const BOOTSTRAP: &str = "bootstrap";
/// See [`BOOTSTRAP`].
pub const DATA: &str = "data";

/// The profile that is meant when none is named.
const DEFAULT_PROFILE: &str = "default";

/// The longest time that can be set, in ms: a year.
const LONGEST_MS: u64 = 365 * 86_400_000;

/// What was set, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    values: BTreeMap<String, String>,
    /// The directory that was named last, also where a broker's address goes before it.
    directory: Option<String>,
    /// Two that say where the log is and of which neither goes before the other, as a sentence.
    conflict: Option<String>,
}

/// Reads `KEY=VALUE`.
pub fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a setting is written KEY=VALUE")?;
    Ok((checked_name(key)?, value.trim().to_owned()))
}

impl Settings {
    /// Puts together what a profile, the environment and the command line set. `profile` is the name that the command line
    /// gives; `variable` looks into the environment.
    ///
    /// # Errors
    /// When a profile is named that there is not, or its file makes no sense.
    pub fn gather(
        profile: Option<&str>,
        given: &[(String, String)],
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> anyhow::Result<Self> {
        let text = |name: &str| {
            let text = variable(name).map(OsString::into_string).transpose();
            text.map_err(|_| failure(Exit::Usage, format!("{name} in the environment is not UTF-8")))
        };
        let named = match profile {
            Some(profile) => Some(profile.to_owned()),
            None => text("THALWEG_PROFILE")?,
        };
        let mut settings = match file(&variable) {
            Some(path) => {
                let is_asked_for = named.is_some() || variable("THALWEG_CONFIG").is_some();
                Self::of_profile(&path, named.as_deref(), is_asked_for)?
            }
            None if named.is_some() => {
                return Err(failure(
                    Exit::Usage,
                    "there is neither HOME nor THALWEG_CONFIG to find profiles by",
                ));
            }
            None => Self::default(),
        };
        let mut of_environment = BTreeMap::new();
        for name in names() {
            if let Some(value) = text(&variable_of(&name))? {
                of_environment.insert(name, value);
            }
        }
        let conflict = settings
            .named_elsewhere(named.as_deref(), &of_environment)
            .or_else(|| twice(&of_environment, variable_of));
        settings.set_all(of_environment, conflict);
        let given: BTreeMap<_, _> = given.iter().cloned().collect();
        let conflict = twice(&given, |name| format!("-X {name}"));
        settings.set_all(given, conflict);
        Ok(settings)
    }

    /// Whether the environment says otherwise than a profile that was named where the log is: either may be what is meant.
    fn named_elsewhere(
        &self,
        named: Option<&str>,
        of_environment: &BTreeMap<String, String>,
    ) -> Option<String> {
        let profile = named?;
        let (own, value) = [BOOTSTRAP, DATA].into_iter().find_map(|name| Some((name, self.get(name)?)))?;
        let mut others = [BOOTSTRAP, DATA].into_iter().filter(|name| of_environment.contains_key(*name));
        let other = others.find(|name| *name != own || of_environment[*name] != value)?;
        Some(format!(
            "the profile `{profile}` says where the log is ({own} = {value}), and so does {} ({}) in the environment",
            variable_of(other),
            of_environment[other]
        ))
    }

    /// What is wrong where it is said twice where the log is, and neither goes before the other.
    pub fn conflict(&self) -> Option<&str> {
        self.conflict.as_deref()
    }

    /// The settings of a profile in the file; without a name those of `[default]`, if there is one.
    fn of_profile(path: &Path, named: Option<&str>, is_asked_for: bool) -> anyhow::Result<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            // Nobody asked for it: it is not there, or somebody else's (HOME outlives a change of user).
            Err(error)
                if !is_asked_for
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) =>
            {
                return Ok(Self::default());
            }
            Err(error) => {
                let code = match error.kind() {
                    ErrorKind::NotFound => Exit::NotFound,
                    ErrorKind::InvalidData => Exit::Usage,
                    _ => Exit::Failed,
                };
                return Err(failure(
                    code,
                    format!("profiles are in {}, which cannot be read: {error}", path.display()),
                ));
            }
        };
        let mut profiles =
            parse(&text).map_err(|error| failure(Exit::Usage, format!("{}: {error}", path.display())))?;
        let name = named.unwrap_or(DEFAULT_PROFILE);
        match profiles.remove(name) {
            Some(Ok(values)) => {
                let conflict = twice(&values, |setting| format!("`{setting}` in the profile `{name}`"));
                Ok(Self { directory: values.get(DATA).cloned(), values, conflict })
            }
            Some(Err(error)) => Err(failure(Exit::Usage, format!("{}: {error}", path.display()))),
            None if named.is_none() => Ok(Self::default()),
            None => Err(failure(
                Exit::NotFound,
                format!(
                    "there is no profile `{name}` in {}{}",
                    path.display(),
                    did_you_mean(name, profiles.keys().map(String::as_str))
                ),
            )),
        }
    }

    /// Sets these, too. Where they say where the log is, that goes before what was said of it, with what is in conflict there.
    fn set_all(&mut self, settings: BTreeMap<String, String>, conflict: Option<String>) {
        if let Some(data) = settings.get(DATA) {
            self.directory = Some(data.clone());
        }
        if settings.contains_key(BOOTSTRAP) || settings.contains_key(DATA) {
            self.values.remove(BOOTSTRAP);
            self.values.remove(DATA);
            self.conflict = conflict;
        }
        self.values.extend(settings);
    }

    /// The directory for a node of one's own, to which no address of another matters.
    pub fn directory(&self) -> Option<&str> {
        self.directory.as_deref()
    }

    /// The value of a setting.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The client's settings with these in place of those in `config`.
    ///
    /// # Errors
    /// When a value is not of its setting's kind.
    pub fn apply(&self, mut config: ClientConfig) -> anyhow::Result<ClientConfig> {
        for (name, value) in &self.values {
            let milliseconds = match name.as_str() {
                "client_id" => {
                    config.client_id.clone_from(value);
                    continue;
                }
                "connect_timeout_ms" => &mut config.connect_timeout_ms,
                "request_timeout_ms" => &mut config.request_timeout_ms,
                "api_timeout_ms" => &mut config.api_timeout_ms,
                "retry_backoff_ms" => &mut config.retry_backoff_ms,
                "retry_backoff_max_ms" => &mut config.retry_backoff_max_ms,
                "metadata_max_age_ms" => &mut config.metadata_max_age_ms,
                "unknown_topic_wait_ms" => &mut config.unknown_topic_wait_ms,
                _ => continue,
            };
            *milliseconds = value.parse().ok().filter(|time| *time <= LONGEST_MS).ok_or_else(|| {
                let reason = format!("`{value}` is not a number of milliseconds up to {LONGEST_MS}");
                failure(Exit::Usage, format!("setting {name}: {reason}"))
            })?;
        }
        Ok(config)
    }
}

/// What can be set.
pub const NAMES: [&str; 10] = [
    BOOTSTRAP,
    DATA,
    "client_id",
    "connect_timeout_ms",
    "request_timeout_ms",
    "api_timeout_ms",
    "retry_backoff_ms",
    "retry_backoff_max_ms",
    "metadata_max_age_ms",
    "unknown_topic_wait_ms",
];

fn names() -> Vec<String> {
    NAMES.map(str::to_owned).to_vec()
}

/// The environment's variable for a setting.
fn variable_of(name: &str) -> String {
    format!("THALWEG_{}", name.to_uppercase())
}

/// What is wrong with settings that say in both ways where the log is; `shown` is how one of them is written there.
fn twice(settings: &BTreeMap<String, String>, shown: impl Fn(&str) -> String) -> Option<String> {
    let is_twice = settings.contains_key(BOOTSTRAP) && settings.contains_key(DATA);
    is_twice.then(|| format!("{} and {} both say where the log is", shown(BOOTSTRAP), shown(DATA)))
}

/// A setting by its name; dots and dashes are as good as underscores.
fn checked_name(name: &str) -> Result<String, String> {
    let plain = name.trim().to_lowercase().replace(['.', '-'], "_");
    if NAMES.contains(&plain.as_str()) {
        return Ok(plain);
    }
    if BrokerConfig::settings().contains_key(name.trim()) {
        return Err(format!("`{}` is a setting of a node: `thalweg serve -c NAME=VALUE`", name.trim()));
    }
    let near = did_you_mean(&plain, NAMES);
    Err(format!("there is no setting `{}`{near}; there are {}", name.trim(), NAMES.join(", ")))
}

/// Where profiles are.
fn file(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if let Some(path) = variable("THALWEG_CONFIG") {
        return Some(PathBuf::from(path));
    }
    let directory = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let directory = directory.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(directory.join("thalweg").join("config.toml"))
}

/// Profiles by their names, each with what it sets, or else with what is wrong in it: that is for those who use it.
type Profiles = BTreeMap<String, Result<BTreeMap<String, String>, String>>;

/// Reads profiles: `[name]`, and below it lines of `key = value`. A value may stand in double quotes; `#` begins a comment.
///
/// # Errors
/// What is wrong with a line that belongs to no profile.
fn parse(text: &str) -> Result<Profiles, String> {
    let mut profiles = Profiles::new();
    let mut current: Option<String> = None;
    // Some editors begin a file with a mark of the order of bytes.
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let wrong = |reason: String| format!("line {}: {reason}", at + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let (name, rest) = rest.split_once(']').ok_or_else(|| wrong(format!("`{line}` lacks a `]`")))?;
            if !rest.trim().is_empty() && !rest.trim().starts_with('#') {
                return Err(wrong(format!("`{}` stands behind the name of a profile", rest.trim())));
            }
            let name = name.trim().trim_matches('"').to_owned();
            profiles.entry(name.clone()).or_insert_with(|| Ok(BTreeMap::new()));
            current = Some(name);
            continue;
        }
        let profile = current.as_ref().and_then(|name| profiles.get_mut(name)).ok_or_else(|| {
            wrong(format!("`{line}` belongs to no profile: `[{DEFAULT_PROFILE}]` goes before it"))
        })?;
        if let Ok(settings) = profile {
            match setting(line) {
                Ok((name, value)) => drop(settings.insert(name, value)),
                Err(reason) => *profile = Err(wrong(reason)),
            }
        }
    }
    Ok(profiles)
}

/// Reads `key = value`.
fn setting(line: &str) -> Result<(String, String), String> {
    let (key, value) =
        line.split_once('=').ok_or_else(|| format!("`{line}` is neither `[profile]` nor `key = value`"))?;
    Ok((checked_name(key)?, parse_value(value.trim())?))
}

fn parse_value(text: &str) -> Result<String, String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let value = text.split('#').next().unwrap_or_default().trim();
        return if value.is_empty() { Err("the value is missing".to_owned()) } else { Ok(value.to_owned()) };
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    loop {
        match chars.next() {
            Some('"') => break,
            Some('\\') => match chars.next() {
                Some(c @ ('"' | '\\')) => value.push(c),
                Some('t') => value.push('\t'),
                other => {
                    return Err(format!(
                        "`\\{}` stands for nothing",
                        other.map(String::from).unwrap_or_default()
                    ));
                }
            },
            Some(c) => value.push(c),
            None => return Err("the value lacks its closing quote".to_owned()),
        }
    }
    let rest = chars.as_str().trim();
    if rest.is_empty() || rest.starts_with('#') {
        Ok(value)
    } else {
        Err(format!("`{rest}` stands behind the value"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# where things are\n[default]\nbootstrap = \"a:1, b:2\" # two\napi.timeout.ms = 900\n\n[ local ]\n\
                        data = /var/lib/log\nclient-id=\"x \\\"y\\\"\"\n";

    #[test]
    fn profiles_are_read_and_mistakes_named_by_line() {
        let profiles = parse(FILE).expect("profiles");
        assert_eq!(profiles.keys().collect::<Vec<_>>(), ["default", "local"]);
        let value = |profile: &str, name: &str| profiles[profile].as_ref().expect("settings")[name].clone();
        assert_eq!(value("default", BOOTSTRAP), "a:1, b:2");
        assert_eq!(value("default", "api_timeout_ms"), "900");
        assert_eq!(value("local", "client_id"), "x \"y\"");
        assert_eq!(parse(&format!("\u{feff}{FILE}")).expect("profiles"), profiles);
        for (text, said) in [
            ("data = x", "line 1: `data = x` belongs to no profile"),
            ("[b]\n[a]\ndata = x\nbootstrp = x\ndata", "line 4: there is no setting `bootstrp`"),
            ("[a]\nbootstrp = x", "line 2: there is no setting `bootstrp` (did you mean `bootstrap`?)"),
            (
                "[a]\nlog.retention.ms = 1",
                "line 2: `log.retention.ms` is a setting of a node: `thalweg serve -c",
            ),
            ("[a\n", "line 1: `[a` lacks a `]`"),
            ("[a]\ndata\n", "line 2: `data` is neither"),
            ("[a]\ndata = \"x\n", "line 2: the value lacks"),
            ("[a]\ndata =\n", "line 2: the value is missing"),
            ("[a]\ndata = \"x\" y\n", "line 2: `y` stands behind"),
        ] {
            let error = parse(text).and_then(|mut profiles| profiles.remove("a").expect("there"));
            let error = error.expect_err(text);
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn the_command_line_goes_before_the_environment_and_that_before_the_profile() {
        let directory = std::env::temp_dir().join(format!("thalweg-settings-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("made");
        let path = directory.join("config.toml");
        std::fs::write(&path, FILE).expect("written");
        let gather = |profile: Option<&str>, given: &[&str], environment: &[(&str, &str)]| {
            let given: Vec<_> = given.iter().map(|text| key_and_value(text).expect("a setting")).collect();
            Settings::gather(profile, &given, |name| match name {
                "THALWEG_CONFIG" => Some(path.clone().into()),
                _ => environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()),
            })
        };
        let set = gather(None, &[], &[]).expect("the default profile");
        assert_eq!((set.get(BOOTSTRAP), set.get(DATA)), (Some("a:1, b:2"), None));
        let set = gather(Some("local"), &[], &[("THALWEG_API_TIMEOUT_MS", "5")]).expect("a profile");
        assert_eq!((set.get(BOOTSTRAP), set.get(DATA)), (None, Some("/var/lib/log")));
        assert_eq!(set.apply(ClientConfig::default()).expect("numbers").api_timeout_ms, 5);
        let set = gather(None, &["bootstrap=d:4"], &[("THALWEG_DATA", "c")]).expect("one of each");
        assert_eq!((set.get(BOOTSTRAP), set.get(DATA)), (Some("d:4"), None));
        assert_eq!(set.conflict(), None);
        let here = ("THALWEG_DATA", "/var/lib/log");
        for (profile, given, environment, said) in [
            (
                None,
                &[][..],
                &[("THALWEG_DATA", "c"), ("THALWEG_BOOTSTRAP", "b:1")][..],
                Some("THALWEG_BOOTSTRAP and THALWEG_DATA"),
            ),
            (None, &["data=x"], &[("THALWEG_DATA", "c"), ("THALWEG_BOOTSTRAP", "b:1")], None),
            (None, &["data=x", "bootstrap=b:1"], &[], Some("-X bootstrap and -X data")),
            (
                Some("local"),
                &[],
                &[("THALWEG_BOOTSTRAP", "b:1")],
                Some("`local` says where the log is (data = /var/lib/log)"),
            ),
            (Some("local"), &[], &[("THALWEG_DATA", "c")], Some("so does THALWEG_DATA (c)")),
            (Some("local"), &[], &[here], None),
            (Some("local"), &["bootstrap=b:1"], &[("THALWEG_DATA", "c")], None),
            (
                None,
                &[],
                &[("THALWEG_PROFILE", "local"), ("THALWEG_BOOTSTRAP", "b:1")],
                Some("THALWEG_BOOTSTRAP (b:1)"),
            ),
        ] {
            let set = gather(profile, given, environment).expect("settings");
            let conflict = set.conflict().unwrap_or_default();
            assert!(said.map_or(conflict.is_empty(), |said| conflict.contains(said)), "{said:?}: {conflict}");
        }
        let set = gather(None, &["api_timeout_ms=soon"], &[]).expect("text");
        assert!(set.apply(ClientConfig::default()).is_err());
        let error =
            gather(None, &[], &[("THALWEG_PROFILE", "locl")]).expect_err("no such profile").to_string();
        assert!(error.contains("did you mean `local`"), "{error}");
        let gone = |name: &str| (name == "THALWEG_CONFIG").then(|| "/nowhere/config.toml".into());
        let error = Settings::gather(None, &[], gone).expect_err("it was named").to_string();
        assert!(error.contains("/nowhere/config.toml"), "{error}");
        let not_text = |name: &str| {
            (name == "THALWEG_DATA")
                .then(|| <OsString as std::os::unix::ffi::OsStringExt>::from_vec(vec![b'x', 0xff]))
        };
        let error = Settings::gather(None, &[], not_text).expect_err("another directory").to_string();
        assert!(error.contains("THALWEG_DATA"), "{error}");
        std::fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn every_setting_of_the_client_can_be_set() {
        let known = serde_json::to_value(ClientConfig::default()).expect("plain data");
        let known: Vec<&String> = known.as_object().expect("an object").keys().collect();
        for name in known.into_iter().filter(|name| *name != "seed") {
            assert!(NAMES.contains(&name.as_str()), "{name}");
        }
    }
}
