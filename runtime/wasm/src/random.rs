//! Random numbers, straight from the kernel. A generator of our own would have
//! to be seeded again in every process that is forked from this one.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

use glovebox_runtime::job::Limit;

use crate::run::Stop;
use crate::state::State;

/// The most random bytes that one call gets: they become host memory first.
const MOST: u64 = 1 << 20;
/// Bytes fetched at once for small requests.
const STOCK: usize = 64;

/// A small stock of random bytes, filled when it is first needed.
#[derive(Default)]
pub(crate) struct Random {
    stock: Vec<u8>,
}

impl Random {
    fn word(&mut self) -> wasmtime::Result<u64> {
        if self.stock.len() < size_of::<u64>() {
            self.stock.resize(STOCK, 0);
            fill(&mut self.stock)?;
        }
        let mut word = [0; size_of::<u64>()];
        word.copy_from_slice(&self.stock.split_off(self.stock.len() - size_of::<u64>()));
        Ok(u64::from_le_bytes(word))
    }

    fn bytes(len: u64) -> wasmtime::Result<Vec<u8>> {
        let len = usize::try_from(len.min(MOST + 1)).unwrap_or(usize::MAX);
        if len as u64 > MOST {
            return Err(wasmtime::Error::new(Stop::Limit(Limit::HostCall)));
        }
        let mut bytes = vec![0; len];
        fill(&mut bytes)?;
        Ok(bytes)
    }
}

impl random::Host for State {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        Random::bytes(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.random.word()
    }
}

impl insecure::Host for State {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        Random::bytes(len)
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
