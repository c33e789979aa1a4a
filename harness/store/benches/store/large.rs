//! A log of ten million events against an empty one.

use super::actions::in_one;
use super::fill::{EVENTS, fill};
use super::{Ours, TURNS, percentile};

pub(crate) fn compare() {
    let (empty, full) = (Ours::new(), Ours::filled(fill));
    let mut times = [Vec::new(), Vec::new()];
    let mut n = 0;
    for _ in 0..2 * TURNS {
        empty.measure(in_one, &mut n, &mut times[0]);
        // Behind what is there.
        let mut beyond = n + EVENTS;
        full.measure(in_one, &mut beyond, &mut times[1]);
        n = beyond - EVENTS;
    }
    let [mut empty, mut full] = times;
    println!("\n{:<36} {:>12} {:>12} {:>7}", "all in one commit, one caller", "empty", "10 M events", "ratio");
    for place in [50, 99] {
        let (empty, full) = (percentile(&mut empty, place), percentile(&mut full, place));
        println!("{:<36} {empty:>9.0} us {full:>9.0} us {:>7.2}", format!("p{place}"), full / empty);
    }
}
