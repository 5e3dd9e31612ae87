//! Hooks by which tests let the application die at a chosen moment, or commit in a wrong order.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::commit::{CommitOrder, CommitStep};
use crate::error::Error;

/// What a test can ask of the runtime. The default asks nothing.
#[derive(Clone, Debug, Default)]
pub struct TestHooks {
    /// In which order a commit takes its steps; every other than [`CommitOrder::Sound`] loses or repeats.
    pub commit_order: CommitOrder,
    /// Where something goes wrong.
    pub failpoint: Option<Failpoint>,
    /// Flush the stores' memory with every commit, so that a kill leaves the state of that very commit; else
    /// it leaves some earlier one's.
    pub flush_state: bool,
    /// How often each point was passed; shared by the threads of an application.
    passed: Arc<Mutex<HashMap<(Moment, CommitStep), u64>>>,
}

impl PartialEq for TestHooks {
    fn eq(&self, other: &Self) -> bool {
        (self.commit_order, self.failpoint, self.flush_state)
            == (other.commit_order, other.failpoint, other.flush_state)
    }
}

/// Before or after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moment {
    /// Before its first effect.
    Before,
    /// After its last effect.
    After,
}

/// What happens at a failpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends at once, as under `kill -9`: nothing is flushed, closed or told to anyone.
    Abort,
    /// The commit fails for good.
    Fail,
    /// The commit fails as when the cluster does not answer: the tasks are opened again.
    Refuse,
    /// The thread says `stalled at FAILPOINT` on standard error and goes on half a second later, so that others
    /// can be killed meanwhile.
    Stall,
}

/// How long a stalled thread stands still.
const STALL: Duration = Duration::from_millis(500);

/// A place in the commit at which something goes wrong: `before:EndTransaction:3` is the third time that the
/// application is about to end a transaction, and it dies there. `:fail`, `:refuse` and `:stall` at the end ask for
/// another [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failpoint {
    /// Before or after the step.
    pub moment: Moment,
    /// The step.
    pub step: CommitStep,
    /// At which passing, from 1.
    pub passing: u64,
    /// What happens there.
    pub fault: Fault,
}

impl FromStr for Failpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: &str| Error::Config {
            field: "failpoint",
            reason: format!("{text:?} {reason}; write before|after:STEP:TIMES[:fail|:refuse|:stall]"),
        };
        let mut parts = text.split(':');
        let moment = match parts.next() {
            Some("before") => Moment::Before,
            Some("after") => Moment::After,
            _ => return Err(wrong("begins with neither before nor after")),
        };
        let name = parts.next().unwrap_or_default();
        let step = CommitStep::ALL.into_iter().find(|step| step.name() == name);
        let step = step.ok_or_else(|| wrong("names no step of the commit"))?;
        let passing = parts.next().unwrap_or("1").parse().map_err(|_| wrong("has no number of times"))?;
        let fault = match parts.next() {
            None => Fault::Abort,
            Some("fail") => Fault::Fail,
            Some("refuse") => Fault::Refuse,
            Some("stall") => Fault::Stall,
            Some(_) => return Err(wrong("ends in something unknown")),
        };
        Ok(Self { moment, step, passing, fault })
    }
}

impl TestHooks {
    /// The hooks that the environment asks for: `THALWEG_FAILPOINT` as [`Failpoint`] reads it,
    /// `THALWEG_COMMIT_ORDER` with the name of a [`CommitOrder`], and `THALWEG_FLUSH_STATE` if it is there.
    ///
    /// # Errors
    /// When a variable is set to something unknown.
    pub fn from_environment() -> Result<Self, Error> {
        let mut hooks = Self::default();
        if let Ok(text) = std::env::var("THALWEG_FAILPOINT") {
            hooks.failpoint = Some(text.parse()?);
        }
        if let Ok(text) = std::env::var("THALWEG_COMMIT_ORDER") {
            hooks.commit_order = text.parse()?;
        }
        hooks.flush_state = std::env::var_os("THALWEG_FLUSH_STATE").is_some();
        Ok(hooks)
    }

    /// Something goes wrong here if the test asked for it.
    pub(crate) fn pass(&self, moment: Moment, step: CommitStep) -> Result<(), Error> {
        let Some(failpoint) = self.failpoint.filter(|point| (point.moment, point.step) == (moment, step))
        else {
            return Ok(());
        };
        let passing = {
            let mut passed = self.passed.lock();
            let count = passed.entry((moment, step)).or_default();
            *count += 1;
            *count
        };
        if passing != failpoint.passing {
            return Ok(());
        }
        let name = || format!("{moment:?}:{}:{passing}", step.name());
        match failpoint.fault {
            Fault::Abort => std::process::abort(),
            Fault::Fail => Err(Error::Failpoint { name: name() }),
            Fault::Refuse => Err(Error::Unavailable { reason: format!("failpoint {}", name()) }),
            Fault::Stall => {
                eprintln!("stalled at {}", name());
                std::thread::sleep(STALL);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failpoint_fires_once_at_its_passing() {
        let failpoint: Failpoint = "after:EndTransaction:2:fail".parse().expect("well-formed");
        let hooks = TestHooks { failpoint: Some(failpoint), ..TestHooks::default() };
        let fires: Vec<_> = (0..4)
            .map(|_| {
                hooks.pass(Moment::Before, CommitStep::EndTransaction).expect("another moment");
                hooks.pass(Moment::After, CommitStep::WriteState).expect("another step");
                hooks.pass(Moment::After, CommitStep::EndTransaction).is_err()
            })
            .collect();
        assert_eq!(fires, [false, true, false, false]);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "during:WriteState", "before:Lunch", "after:WriteState:x", "after:WriteState:1:y"] {
            assert!(text.parse::<Failpoint>().is_err(), "{text}");
        }
    }
}
