//! Random numbers, straight from the kernel: a generator of our own would have
//! to be seeded again in every process that is forked from this one. Or from a
//! seed, where every run has to be the same.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};
use env_contracts::Deterministic;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

use glovebox_runtime::job::Limit;

use crate::run::Stop;
use crate::state::State;

/// The most random bytes that one call gets: they become host memory first.
const MOST: u64 = 1 << 20;
/// Bytes fetched at once for small requests.
const STOCK: usize = 64;

/// The random numbers of one execution.
pub(crate) enum Random {
    /// The kernel's, with a small stock that is filled when it is first needed.
    Kernel { stock: Vec<u8> },
    /// The same in every run.
    Seeded(Box<ChaCha20Rng>),
}

/// What a seed is hashed with, so that nothing else draws the same numbers.
const DOMAIN: &[u8] = b"glovebox/deterministic/v1\0";

impl Random {
    pub(crate) fn new(deterministic: Option<&Deterministic>) -> Self {
        match deterministic {
            None => Self::Kernel { stock: Vec::new() },
            Some(chosen) => {
                let seed = Sha256::new().chain_update(DOMAIN).chain_update(chosen.seed.to_le_bytes()).finalize();
                Self::Seeded(Box::new(ChaCha20Rng::from_seed(seed.into())))
            }
        }
    }

    fn word(&mut self) -> wasmtime::Result<u64> {
        let stock = match self {
            Self::Kernel { stock } => stock,
            Self::Seeded(generator) => return Ok(generator.next_u64()),
        };
        if stock.len() < size_of::<u64>() {
            stock.resize(STOCK, 0);
            fill(stock)?;
        }
        let mut word = [0; size_of::<u64>()];
        word.copy_from_slice(&stock.split_off(stock.len() - size_of::<u64>()));
        Ok(u64::from_le_bytes(word))
    }

    fn bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        let len = usize::try_from(len.min(MOST + 1)).unwrap_or(usize::MAX);
        if len as u64 > MOST {
            return Err(wasmtime::Error::new(Stop::Limit(Limit::HostCall)));
        }
        let mut bytes = vec![0; len];
        match self {
            Self::Kernel { .. } => fill(&mut bytes)?,
            Self::Seeded(generator) => generator.fill_bytes(&mut bytes),
        }
        Ok(bytes)
    }
}

impl random::Host for State {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.random.bytes(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.random.word()
    }
}

impl insecure::Host for State {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.random.bytes(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.random.word()
    }
}

impl insecure_seed::Host for State {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.random.word()?, self.random.word()?))
    }
}

fn fill(mut bytes: &mut [u8]) -> wasmtime::Result<()> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(count) => bytes = &mut bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(wasmtime::Error::new(std::io::Error::from(errno))),
        }
    }
    Ok(())
}
