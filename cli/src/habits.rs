//! What the tools of Kafka and kcat call otherwise: a tip for who types it here by habit.

use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::Arguments;

/// Where a word is typed, the words, and what to type instead.
type Habit = (&'static str, &'static [&'static str], &'static str);

const NAMED: &str = "names stand without an option";
const ANY_GROUP: &str = "`consume` joins no group: it reads from --offset to --until, and commits nothing. `thalweg group describe GROUP` \
                         shows where a group has come to, `thalweg group seek GROUP --to PLACE` moves it";
const CLIENT: &str =
    "settings of the client are -X KEY=VALUE, or in a profile; `thalweg help settings` lists them";
const TEMPLATE: &str =
    "--format says what is printed, such as --format '%k %v\\n'; `thalweg help templates` explains it";
const AS_IS: &str = "keys and values are printed as the bytes that they are; --format json writes {\"base64\": …} for what is not UTF-8";
const KEYS: &str =
    "--key-delimiter TEXT splits a key off each line; `thalweg help formats` shows what else there is";
const AT_ONCE: &str = "leave it away: it is done at once, and --dry-run only shows it";

/// Words that are no options: under which command (`topic *` for those below it, `*` for all), and the tip. What stands first
/// is taken.
const OPTIONS: &[Habit] = &[
    ("", &["-C"], "`thalweg consume TOPIC` reads"),
    ("", &["-P"], "`thalweg produce TOPIC` writes"),
    ("", &["-L"], "`thalweg topic list` and `thalweg cluster info` list topics and nodes"),
    ("", &["-Q"], "`thalweg consume TOPIC --offset @2026-01-01T00:00:00Z` begins at a time"),
    ("consume", &["--group", "--group-id", "-G", "-g"], ANY_GROUP),
    (
        "consume",
        &["--from-beginning"],
        "leave it away: it begins at the start unless --offset says otherwise",
    ),
    ("consume", &["--topic", "-t"], "the topic stands without an option: `thalweg consume TOPIC`"),
    ("consume", &["--include", "--whitelist"], "it reads one topic: `thalweg consume TOPIC`"),
    ("consume", &["--max-messages", "--count", "-c"], "-n COUNT (--num) stops after so many records"),
    ("consume", &["--timeout-ms"], "--exit (-e) stops where the log ended when the command began"),
    ("consume", &["--isolation-level"], "committed records are read; --uncommitted reads all"),
    ("consume", &["--formatter", "--property", "--formatter-property", "-f", "-K", "-D"], TEMPLATE),
    ("consume", &["-J"], "--format json prints a JSON object a line"),
    ("consume", &["--key-deserializer", "--value-deserializer", "-s"], AS_IS),
    (
        "consume",
        &["-C", "-q", "-u"],
        "leave it away: records, and nothing else, go to standard output at once",
    ),
    ("produce", &["--topic", "-t"], "the topic stands without an option: `thalweg produce TOPIC`"),
    ("produce", &["--key-separator", "--property", "--reader-property", "-K"], KEYS),
    ("produce", &["-l"], "--file FILE (-f) reads the lines of a file"),
    (
        "produce",
        &["-P", "--sync"],
        "leave it away: the command ends when all records are written, or says which are not",
    ),
    ("produce", &["--compression-codec", "--compression-type"], "--compression CODEC (-z) compresses"),
    (
        "produce",
        &["--request-required-acks", "-a"],
        "--acks 0, 1 or all says when a record counts as written",
    ),
    ("topic", &["--create"], "`thalweg topic create TOPIC` creates it"),
    ("topic", &["--list", "-l", "-L"], "`thalweg topic list` lists them"),
    ("topic", &["--describe"], "`thalweg topic describe TOPIC` describes it"),
    ("topic", &["--delete"], "`thalweg topic delete TOPIC` deletes it"),
    (
        "topic",
        &["--alter"],
        "`thalweg topic alter TOPIC -c NAME=VALUE` sets a config, `thalweg topic add-partitions TOPIC -p N` adds partitions",
    ),
    ("topic alter", &["--partitions", "-p"], "`thalweg topic add-partitions TOPIC -p N` adds partitions"),
    ("topic alter", &["--add-config"], "-c NAME=VALUE (--config) sets a config"),
    ("topic alter", &["--delete-config"], "-u NAME (--unset) gives a config its default back"),
    (
        "topic describe",
        &[
            "--under-replicated-partitions",
            "--unavailable-partitions",
            "--under-min-isr-partitions",
            "--at-min-isr-partitions",
        ],
        "`thalweg cluster health` tells of them",
    ),
    (
        "topic list",
        &["--exclude-internal"],
        "leave it away: the log's own topics are shown only with --internal",
    ),
    ("topic *", &["--topic", "-t"], NAMED),
    ("topic *", &["--if-exists"], "there is no such option: exit code 3 says that a topic is not there"),
    ("group", &["--list"], "`thalweg group list` lists them"),
    ("group", &["--describe"], "`thalweg group describe GROUP` describes it"),
    ("group", &["--delete"], "`thalweg group delete GROUP` deletes it"),
    ("group", &["--reset-offsets"], "`thalweg group seek GROUP --to PLACE` has it go on elsewhere"),
    ("group", &["--delete-offsets"], "`thalweg group delete GROUP --topic TOPIC` has it forget a topic"),
    ("group seek", &["--to-earliest"], "--to start"),
    ("group seek", &["--to-latest"], "--to end"),
    ("group seek", &["--to-offset"], "--to 42"),
    ("group seek", &["--to-datetime"], "--to @2026-01-01T00:00:00Z"),
    ("group seek", &["--by-duration"], "--to @-1h"),
    ("group seek", &["--execute", "--reset-offsets"], AT_ONCE),
    ("group seek", &["--all-topics"], "leave it away: without --topic it is all that the group has read"),
    (
        "group describe",
        &["--members", "--offsets", "--state", "--verbose"],
        "leave it away: members, offsets and state are shown together",
    ),
    ("group *", &["--group", "-g"], NAMED),
    ("serve", &["--port", "--host", "-p"], "--listen HOST:PORT says where it listens"),
    ("serve", &["--override"], "-c NAME=VALUE sets what `thalweg help node` lists"),
    ("sql", &["--execute", "--query", "-e", "-q"], "-c 'SELECT …' runs statements, -f FILE those of a file"),
    ("top", &["--topic", "-t"], "topics stand without an option: `thalweg top TOPIC`"),
    (
        "*",
        &["--bootstrap-server", "--broker-list", "--brokers", "-b"],
        "--bootstrap HOST:PORT names the brokers",
    ),
    (
        "*",
        &[
            "--command-config",
            "--consumer.config",
            "--producer.config",
            "--consumer-property",
            "--producer-property",
            "-F",
        ],
        CLIENT,
    ),
];

/// Words that are no commands, in the same way.
const COMMANDS: &[Habit] = &[
    (
        "",
        &["topics", "list"],
        "`thalweg topic list` lists topics, `thalweg topic` does what else there is with them",
    ),
    (
        "",
        &["create", "delete", "describe", "alter"],
        "`thalweg topic` creates, deletes, describes and changes topics",
    ),
    ("", &["configs"], "`thalweg topic alter TOPIC -c NAME=VALUE` sets a config of a topic"),
    (
        "",
        &["groups", "consumer-groups", "share-groups"],
        "`thalweg group` is about consumer groups and share groups",
    ),
    ("", &["console-consumer", "consumer", "read", "cat"], "`thalweg consume TOPIC` reads"),
    ("", &["console-producer", "producer", "write"], "`thalweg produce TOPIC` writes"),
    ("", &["server", "start", "broker"], "`thalweg serve` runs a node"),
    ("", &["stream", "streams"], "stream processors are Rust programs; docs/streams.md is about them"),
    ("topic", &["ls"], "`thalweg topic list`"),
    ("topic", &["rm", "remove"], "`thalweg topic delete TOPIC`"),
    ("topic", &["consume", "produce"], "`thalweg consume TOPIC` and `thalweg produce TOPIC`"),
    ("group", &["reset", "reset-offsets"], "`thalweg group seek GROUP --to PLACE`"),
    ("cluster", &["list", "nodes", "describe", "metadata"], "`thalweg cluster info`"),
];

/// Gives an error of the command line the tip for who has typed `words` by habit. Where there is none, the advice to put `--`
/// before an option goes: nothing here is called so.
pub fn advised(mut error: clap::Error, words: &[String]) -> clap::Error {
    let (habits, context) = match error.kind() {
        ErrorKind::UnknownArgument => (OPTIONS, ContextKind::InvalidArg),
        ErrorKind::InvalidSubcommand => (COMMANDS, ContextKind::InvalidSubcommand),
        _ => return error,
    };
    let Some(ContextValue::String(typed)) = error.get(context) else { return error };
    let command = command_of(words);
    let tip = match &*command {
        "sql" if !typed.starts_with('-') => Some("-c 'SELECT …' runs statements, -f FILE those of a file"),
        command => tip(habits, command, typed),
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    } else {
        error.remove(ContextKind::Suggested);
    }
    error
}

fn tip(habits: &[Habit], command: &str, typed: &str) -> Option<&'static str> {
    let above = command.split_once(' ').map(|(above, _)| format!("{above} *"));
    [Some(command), above.as_deref(), Some("*")].into_iter().flatten().find_map(|place| {
        let (_, _, tip) = habits.iter().find(|(of, words, _)| *of == place && words.contains(&typed))?;
        Some(*tip)
    })
}

/// The names of the command and the one below it, as far as they were typed.
fn command_of(words: &[String]) -> String {
    let (program, mut names) = (Arguments::command(), Vec::new());
    let mut command = &program;
    for word in words {
        if let Some(below) = command.find_subcommand(word) {
            names.push(below.get_name().to_owned());
            command = below;
        }
    }
    names.join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let typed = std::iter::once("thalweg".to_owned()).chain(words.iter().cloned());
        let error = Arguments::try_parse_from(typed).expect_err(line);
        advised(error, &words).render().to_string()
    }

    #[test]
    fn every_habit_has_its_tip() {
        for (habits, of_commands) in [(OPTIONS, false), (COMMANDS, true)] {
            for (place, typed, tip) in habits {
                let command = match *place {
                    "topic *" => "topic describe",
                    "group *" => "group describe",
                    "*" => "topic list",
                    place => place,
                };
                for word in *typed {
                    let value = if of_commands { "" } else { "x" };
                    let told = told(&format!("{command} {word} {value}"));
                    assert!(told.contains(&format!("tip: {tip}\n")), "{command} {word}: {told}");
                    assert_eq!(told.matches("tip:").count(), 1, "{command} {word}: {told}");
                }
            }
        }
    }

    #[test]
    fn a_tip_leads_somewhere() {
        for (line, expected) in [
            ("--data log consume --group g t", ANY_GROUP),
            ("consume t --from-beginning", "leave it away"),
            ("consume --topic=t", "`thalweg consume TOPIC`"),
            ("topic --create --topic t", "`thalweg topic create TOPIC`"),
            ("topic create --topic t", NAMED),
            ("produce t --bootstrap-server h:1", "--bootstrap HOST:PORT"),
            ("topic create t --partition 3", "a similar argument exists: '--partitions'"),
            ("group list --bootstrap-server=h:1", "--bootstrap HOST:PORT"),
            ("sql SELECT", "-c 'SELECT …'"),
            ("consum t", "a similar subcommand exists: 'consume'"),
        ] {
            let told = told(line);
            assert!(told.contains("tip: ") && told.contains(expected), "{line}: {told}");
            assert!(!told.contains("-- --"), "{line}: {told}");
        }
        let told = told("consume t --nonsense");
        assert!(!told.contains("tip:") && told.contains("--nonsense"), "{told}");
    }
}
