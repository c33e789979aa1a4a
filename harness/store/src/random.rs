//! Identifiers that nobody else has.

use env_contracts::{Code, Id, Problem};

/// 128 random bits.
pub(crate) fn id() -> Result<Id, Problem> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())
            .map_err(|error| Problem::new(Code::StateUnavailable, format!("no random numbers: {error}")))?;
    }
    let text = format!("{:032x}", u128::from_be_bytes(bytes));
    text.parse().map_err(|error: String| unreachable!("hexadecimal digits are an id: {error}"))
}
