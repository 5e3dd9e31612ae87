//! `thalweg help`: a command's own help, and pages about what several commands share.

use clap::CommandFactory;
use thalweg_broker::BrokerConfig;

use crate::advice::did_you_mean;
use crate::exit::{Exit, failure};
use crate::output::line;

/// The pages that are about no command.
pub const PAGES: [(&str, &str); 4] =
    [("offsets", OFFSETS), ("templates", TEMPLATES), ("formats", FORMATS), ("settings", SETTINGS)];

/// The page of what [`thalweg_broker`] knows.
const NODE: &str = "node";

/// Below the list of commands.
pub const AFTER: &str = "`thalweg help COMMAND` explains a command; `thalweg help offsets`, `templates`, `formats` and `settings` \
                         what they share, `thalweg help node` what `serve -c` sets.";

const OFFSETS: &str = "\
Offsets: where `consume --offset`, `consume --until`, `group seek --to`, `topic analyze --offset` and `topic delete-records
--before` begin and end

  start                     the first record that is still there
  end                       behind the last record
  42                        offset 42
  +10                       10 after the start
  -5                        5 before the end
  @2026-01-01T00:00:00Z     the first record as late as that; also @2026-01-01 and @2026-01-01T10:00 (UTC), +02:00 for a zone
  @1700000000000            the same, in ms since 1970
  @-1h                      the same, an hour ago; units are ms, s, m, h and d
  10:20   :20   10:         from offset 10 up to and without 20; from the start; for ever
  @-2d:@-1d   :@-1h         from one time up to and without another; from the start; also @T1:end and 10:@T2

Offsets count in each partition by itself, and the markers that end transactions take some, too. A time is where the first
record as late as it stands, whatever comes behind: where timestamps are out of order, what `@T1:@T2` shows may hold earlier
records, and later ones may lie beyond it. SQL finds all: SELECT … WHERE _timestamp >= '…' AND _timestamp < '…'.
A time before 1970 is the start. An end that lies behind the last record is waited for; `consume --exit` (-e) stops where the log
ended when the command began, if that comes first.

  thalweg consume flights -o -5 --until end         the last five of each partition
  thalweg consume flights -o @-1h                   the last hour, and what comes
  thalweg consume flights -p 0 -o 100:110           ten offsets of partition 0
  thalweg consume flights -p 0 -o 100:110 -e        those of them that are there
  thalweg group seek readers --to @2026-01-01       a group goes on there
  thalweg topic delete-records flights -b @-30d     what is older goes";

const TEMPLATES: &str = "\
Templates: what `consume --format` prints of each record

  %t  topic                 %p  partition             %o  offset
  %k  key                   %v  value                 %h  headers, name=value, separated by commas
  %d  timestamp in ms since 1970
  %K  length of the key     %V  length of the value, in bytes; -1 for null
  %%  a percent sign
  \\n \\t \\r \\0 \\\\            line feed, tab, carriage return, NUL, backslash

Nothing is added: a template that is to print lines ends in \\n. Bytes come out as they are. Without --format it is '%v\\n';
`--format json` prints a JSON object a line, with {\"base64\": …} for what is not UTF-8; `produce --input record` takes that.

  thalweg consume flights --format '%p:%o %k %v\\n'
  thalweg consume flights --format '%K %V\\n' --until end";

const FORMATS: &str = "\
Formats: what goes in and out

  produce --input text      a line is a record, its bytes are the value; --key-delimiter TEXT splits a key off,
                            and a line without it is refused: the records before it are written, the rest is not read
  produce --input json      a line is a JSON object and the value; --key FIELD and --timestamp FIELD take fields of it
  produce --input record    a line is a whole record as `consume --format json` prints it, with key, value, headers and time;
                            --keep-partition takes its partition, too. Blank lines are passed over here and in json
  produce --input csv       a row is a record, as a JSON object named by the header row; --key and --timestamp take columns,
                            --null TEXT is how a missing value is spelled. Fields that are plain numbers become numbers
  produce --header N=V      a header of each record; may be repeated
  produce --empty-as-null   (-Z) with text: an empty value is null, a tombstone, and an empty key, too
  produce --file FILE       plain, gzip or Zstandard, told by the first bytes
  produce --compression     none, gzip, snappy, lz4, zstd

  consume --format          a template (`thalweg help templates`), or json
  sql --format              table, csv, tsv, json
  other commands --format   text, or json: a JSON object a line, numbers as numbers; only standard output carries results

  sql: 'file.csv', 'file.json', 'file.parquet' and 'directory/' in single quotes are tables;
       COPY … TO 'directory' (FORMAT parquet) writes Parquet

Timestamps are RFC 3339 (2026-01-01T00:00:00Z; without a zone UTC), dates, or ms since 1970; none is before 1970.";

const SETTINGS: &str = "\
Settings: where the log is, and how patiently it is talked to

  bootstrap                 brokers to talk to, HOST:PORT[,HOST:PORT…]; or
  data                      a data directory
  client_id                 the name that brokers see
  connect_timeout_ms, request_timeout_ms, api_timeout_ms       time for a connection, an answer, a whole call
  retry_backoff_ms, retry_backoff_max_ms, metadata_max_age_ms, unknown_topic_wait_ms

They come from the command line (--bootstrap, --data, -X key=value), then from the environment (THALWEG_BOOTSTRAP,
THALWEG_DATA, THALWEG_API_TIMEOUT_MS …), then from a profile (--profile NAME, THALWEG_PROFILE) in $THALWEG_CONFIG,
$XDG_CONFIG_HOME/thalweg/config.toml or ~/.config/thalweg/config.toml; the profile [default] needs no naming. It is an error
when one of these says both bootstrap and data, and when a profile that was named says another place than the environment.

  [default]
  bootstrap = \"localhost:9092\"

  [production]
  bootstrap = \"kafka-1:9092,kafka-2:9092\"
  api_timeout_ms = 60000

  thalweg --profile production topic list
  thalweg topic list --bootstrap kafka-1:9092 -X api_timeout_ms=60000

THALWEG_LOG says what is logged on standard error, such as debug or thalweg_client=trace.";

/// The settings of a node, each with its default and what it is for.
fn node_page() -> String {
    let mut page = "Node: what `serve -c NAME=VALUE` sets, by the names that Kafka's brokers have, each with its default\n".to_owned();
    for (name, (default, purpose)) in BrokerConfig::settings() {
        let default = if default.is_empty() { "nothing" } else { &default };
        page.push_str(&format!("\n  {name} = {default}\n      {purpose}"));
    }
    page
}

/// Prints the help of a command, or a page.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    if let [name] = words
        && name == NODE
    {
        return line(node_page());
    }
    if let [name] = words
        && let Some((_, page)) = PAGES.iter().find(|(known, _)| *known == name)
    {
        return line(page);
    }
    let mut program = crate::Arguments::command();
    program.build();
    let mut command = &mut program;
    for word in words {
        let pages: Vec<&str> = match words.len() {
            1 => PAGES.iter().map(|(name, _)| *name).chain([NODE]).collect(),
            _ => Vec::new(),
        };
        let known: Vec<String> = command.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        command = command.find_subcommand_mut(word).ok_or_else(|| {
            let names = known.iter().map(String::as_str).chain(pages.iter().copied());
            failure(Exit::Usage, format!("there is no help about `{word}`{}", did_you_mean(word, names)))
        })?;
    }
    line(command.render_long_help().to_string().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::NAMES;

    #[test]
    fn pages_name_all_that_there_is() {
        for name in NAMES {
            assert!(SETTINGS.contains(name), "{name}");
        }
        for field in "tpokvhdKV%".chars() {
            assert!(TEMPLATES.contains(&format!("%{field}  ")), "%{field}");
        }
        for (name, page) in PAGES {
            assert!(AFTER.contains(name), "{name}");
            let longest = page.lines().map(|line| line.chars().count()).max();
            assert!(longest < Some(130), "{name} has a line of {longest:?}");
        }
    }

    #[test]
    fn the_offsets_of_the_page_are_offsets() {
        let examples =
            OFFSETS.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  thalweg"));
        let words = examples.filter_map(|line| line.split_whitespace().next());
        let mut count = 0;
        for word in words {
            crate::offset_range::OffsetRange::parse(word, 1_700_000_000_000)
                .unwrap_or_else(|error| panic!("{error}"));
            count += 1;
        }
        assert!(count >= 9, "{count}");
    }
}
