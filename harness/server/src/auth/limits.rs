//! How often somebody may ask, and how often a stranger may guess.

use std::num::NonZeroU32;

use env_contracts::{Code, Name, Problem};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

/// How many wrong codes and tokens are answered as such: one each second, some
/// at once. Both are out of reach of who guesses; they should not fill the log.
const GUESSES: (u32, u32) = (1, 10);

/// How many passphrases one credential may try: as many as a person mistypes.
const UNLOCKS_OF_ONE: (u32, u32) = (1, 5);

/// How many passphrases are tried at once: each costs 64 MiB and a moment of a
/// processor.
pub(crate) const UNLOCKS: usize = 2;

/// The limits of a server.
pub(crate) struct Limits {
    calls: DefaultKeyedRateLimiter<Name>,
    guesses: DefaultDirectRateLimiter,
    unlocks: DefaultKeyedRateLimiter<Name>,
    clock: DefaultClock,
}

impl Limits {
    /// So many requests of one credential each second.
    pub(crate) fn new(rate: NonZeroU32) -> Self {
        let some = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let slow = |(each, at_once): (u32, u32)| Quota::per_second(some(each)).allow_burst(some(at_once));
        Self {
            calls: RateLimiter::keyed(Quota::per_second(rate)),
            guesses: RateLimiter::direct(slow(GUESSES)),
            unlocks: RateLimiter::keyed(slow(UNLOCKS_OF_ONE)),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request of this credential.
    pub(crate) fn call(&self, credential: &Name) -> Result<(), Problem> {
        self.calls.check_key(credential).map_err(|over| {
            let wait = over.wait_time_from(self.clock.now());
            Problem::new(Code::RateLimited, format!("`{credential}` asks too often; again in {} ms", wait.as_millis()))
                .with_help("wait as long as the message says, or raise `serve.rate`")
        })
    }

    /// Counts a credential that was wrong. Whoever has a right one is not
    /// slowed down by those who guess.
    pub(crate) fn guess(&self) -> Result<(), Problem> {
        self.guesses.check().map_err(|over| {
            let wait = over.wait_time_from(self.clock.now());
            let message = format!("too many wrong credentials; again in {} ms", wait.as_millis());
            Problem::new(Code::RateLimited, message).with_help("wait as long as the message says")
        })
    }

    /// Counts a passphrase that this credential tries. It is counted for itself:
    /// strangers who guess must not keep a person from deciding.
    pub(crate) fn unlock(&self, credential: &Name) -> Result<(), Problem> {
        self.unlocks.check_key(credential).map_err(|over| {
            let wait = over.wait_time_from(self.clock.now());
            let message = format!("`{credential}` tries too many passphrases; again in {} ms", wait.as_millis());
            Problem::new(Code::RateLimited, message).with_help("wait as long as the message says")
        })
    }

    /// Forgets those who have not asked for a while.
    pub(crate) fn tidy(&self) {
        self.calls.retain_recent();
        self.unlocks.retain_recent();
    }
}
