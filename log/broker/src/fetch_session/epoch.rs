//! The id and the epoch of a fetch session, and what a request means by them.

/// Which session; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SessionId(pub(crate) i32);

impl SessionId {
    /// Outside of any session.
    pub(crate) const NONE: Self = Self(0);
}

/// Counts the fetches of a session, from 1; after the largest number comes 1 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionEpoch(pub(crate) i32);

impl SessionEpoch {
    /// Names all partitions, and asks for a session.
    const OPENS: Self = Self(0);
    /// Names all partitions, and wants no session.
    const OUTSIDE: Self = Self(-1);
    /// The first fetch within a session.
    pub(crate) const FIRST: Self = Self(1);

    /// The one that follows within a session.
    pub(crate) fn next(self) -> Self {
        Self(self.0.checked_add(1).unwrap_or(Self::FIRST.0))
    }
}

/// What a fetch has to do with sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It names all its partitions and leaves no session behind. The one it names, if any, ends.
    Outside { ends: Option<SessionId> },
    /// It names all its partitions and asks for a new session. The one it names, if any, ends.
    Opens { ends: Option<SessionId> },
    /// It goes on with a session.
    Within { id: SessionId, epoch: SessionEpoch },
}

impl Phase {
    /// What a request means that carries these.
    pub(crate) fn of(id: SessionId, epoch: SessionEpoch) -> Self {
        let ends = (id != SessionId::NONE).then_some(id);
        match epoch {
            SessionEpoch::OUTSIDE => Self::Outside { ends },
            SessionEpoch::OPENS => Self::Opens { ends },
            _ => Self::Within { id, epoch },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ids_and_epochs_mean() {
        for (id, epoch, phase) in [
            (0, -1, Phase::Outside { ends: None }),
            (7, -1, Phase::Outside { ends: Some(SessionId(7)) }),
            (0, 0, Phase::Opens { ends: None }),
            (7, 0, Phase::Opens { ends: Some(SessionId(7)) }),
            (7, 1, Phase::Within { id: SessionId(7), epoch: SessionEpoch(1) }),
            (0, 1, Phase::Within { id: SessionId(0), epoch: SessionEpoch(1) }),
            (7, -2, Phase::Within { id: SessionId(7), epoch: SessionEpoch(-2) }),
        ] {
            assert_eq!(Phase::of(SessionId(id), SessionEpoch(epoch)), phase);
        }
    }

    #[test]
    fn epochs_begin_again_with_one() {
        assert_eq!(SessionEpoch(1).next(), SessionEpoch(2));
        assert_eq!(SessionEpoch(i32::MAX).next(), SessionEpoch(1));
    }
}
