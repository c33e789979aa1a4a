//! Observations and problems for people.

use std::io::Write as _;
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use env_contracts::{ByteSize, Observation, Problem, StreamOutput};
use serde_json::{Value, json};

use crate::terminal::{escaped, escaped_line};

pub(crate) const FAILED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const SUCCEEDED: Style = AnsiColor::Green.on_default().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

/// How many lines of a stream are printed; the rest is in `--json`.
const STREAM_LINES: usize = 20;

/// What commands that are shown have to say of the state folder.
static STATE: OnceLock<String> = OnceLock::new();

/// Commands that are shown name this state folder from here on: who pastes
/// one elsewhere means the same.
pub(crate) fn name_state(folder: &str) {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    let quoted = if folder.chars().all(plain) { folder.to_owned() } else { quote(folder) };
    let _ = STATE.set(format!("--state {quoted} "));
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A text of ours whose commands can be pasted.
pub(crate) fn pasted(text: &str) -> String {
    let Some(state) = STATE.get() else { return text.to_owned() };
    let mut parts = text.split("`glovebox ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let command = part.split('`').next().unwrap_or_default();
        let word = command.split(' ').next().unwrap_or_default();
        // These need none.
        let stateless = ["config", "explain", "completions"].contains(&word) || command.ends_with("--help");
        out.push_str("`glovebox ");
        out.push_str(if stateless { "" } else { state });
        out.push_str(part);
    }
    out
}

/// A problem on standard error: message, code, way out.
pub(crate) fn problem(problem: &Problem) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{FAILED}error{FAILED:#} [{}]: {}", problem.code, indented(&problem.message, "  │ "));
    let _ = writeln!(err, "hint: {}", escaped(&pasted(&problem.help)));
}

/// A problem on standard output, for a program that reads JSON there.
pub(crate) fn problem_json(problem: &Problem) {
    // It stands on standard error too: a closed pipe loses nothing.
    let _ = json(&json!({ "problem": problem }));
}

/// An Observation on standard output, readable.
///
/// # Errors
/// The stream's, such as a closed pipe.
pub(crate) fn observation(observation: &Observation) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let outcome = &observation.outcome;
    let style = if outcome.code.is_none() { SUCCEEDED } else { FAILED };
    writeln!(out, "{style}{outcome}{style:#}  {}  {FAINT}{}{FAINT:#}", observation.capability, observation.action_id)?;
    if let Some(message) = &outcome.message {
        let code = outcome.code.map(|code| format!(" [{code}]")).unwrap_or_default();
        // A bar before every further line: a tool's message can't pass for
        // ours by breaking the line.
        writeln!(out, "  {}{code}", indented(message, "  │ "))?;
    }
    if let Some(help) = &outcome.help {
        writeln!(out, "  hint: {}", escaped(&pasted(help)))?;
    }
    data(&mut out, &observation.data)?;
    // A command's standard output is its result; both would be one too many.
    if observation.data == Value::Null {
        stream(&mut out, "stdout", &observation.output.stdout)?;
    }
    stream(&mut out, "stderr", &observation.output.stderr)?;
    for artifact in &observation.artifacts {
        let (name, size) = (escaped_line(&artifact.name), artifact.size);
        writeln!(out, "  artifact {}  {name}  {size} bytes  {}", artifact.uri, escaped_line(&artifact.media_type))?;
    }
    if let Some(found) = &observation.verification {
        let why = found.why.as_ref().map_or_else(String::new, |why| format!(": {}", escaped_line(why)));
        writeln!(out, "  verified by {}: {}{why}", found.capability, found.verdict)?;
    }
    for step in &observation.next {
        let with = step.capability.as_ref().map_or_else(String::new, |capability| format!(" with {capability}"));
        writeln!(out, "  next: {}{with}: {}", step.kind, escaped_line(&step.why))?;
    }
    for notice in &observation.notices {
        writeln!(out, "  note: {}", escaped_line(&notice.message))?;
    }
    if observation.plan.is_none() {
        return Ok(());
    }
    let times = &observation.times;
    writeln!(
        out,
        "{FAINT}  setup {} · run {} · cpu {} · memory {}{FAINT:#}",
        span(times.setup_us),
        span(times.run_us),
        span(observation.usage.cpu_us),
        ByteSize(observation.usage.memory_peak >> 10 << 10)
    )
}

/// A time as people read it: three digits are enough to see where it went.
fn span(micros: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", micros / unit, micros % unit * 10 / unit);
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{} ms", tenths(1_000)),
        _ => format!("{} s", tenths(1_000_000)),
    }
}

/// A result: an object of plain values as a list, anything else as JSON.
fn data(out: &mut impl std::io::Write, data: &Value) -> std::io::Result<()> {
    match data {
        Value::Null => Ok(()),
        Value::String(text) if text.trim_end().is_empty() => Ok(()),
        Value::String(text) => writeln!(out, "  {}", indented(text, "  │ ")),
        Value::Object(map) if map.values().all(|value| !value.is_object() && !value.is_array()) => {
            let width = map.keys().map(|key| key.chars().count()).max().unwrap_or(0).min(32);
            for (key, value) in map {
                let value = match value {
                    Value::String(text) => indented(text, &format!("  {:width$}  ", "")),
                    other => other.to_string(),
                };
                let line = format!("  {:width$}  {value}", escaped_line(key));
                writeln!(out, "{}", line.trim_end())?;
            }
            Ok(())
        }
        other => {
            let text = serde_json::to_string_pretty(other).unwrap_or_default();
            writeln!(out, "  {}", indented(&text, "  "))
        }
    }
}

/// Text of strangers whose lines after the first stand under it; empty ones
/// stay empty.
fn indented(text: &str, indent: &str) -> String {
    let lines: Vec<String> = escaped(text.trim_end())
        .split('\n')
        .enumerate()
        .map(|(at, line)| if at == 0 || line.is_empty() { line.to_owned() } else { format!("{indent}{line}") })
        .collect();
    lines.join("\n")
}

fn stream(out: &mut impl std::io::Write, name: &str, stream: &StreamOutput) -> std::io::Result<()> {
    if stream.total == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "  {name} ({} bytes{})",
        stream.total,
        if stream.omitted > 0 { format!(", {} left out", stream.omitted) } else { String::new() }
    )?;
    let Some(text) = &stream.text else {
        return writeln!(out, "    not text; see --json or the artifact");
    };
    let lines: Vec<&str> = text.lines().collect();
    // The end matters most: that is where errors stand.
    let skipped = lines.len().saturating_sub(STREAM_LINES);
    if skipped > 0 {
        writeln!(out, "    … {skipped} lines before these")?;
    }
    for line in &lines[skipped..] {
        writeln!(out, "    {}", escaped_line(line))?;
    }
    Ok(())
}

/// Any data as JSON on standard output.
///
/// # Errors
/// The stream's, such as a closed pipe.
pub(crate) fn json(value: &impl serde::Serialize) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

/// Bytes on standard output: whoever pipes them wants them as they are; a
/// terminal must not obey them.
///
/// # Errors
/// The stream's, such as a closed pipe.
pub(crate) fn bytes(bytes: &[u8]) -> std::io::Result<()> {
    write_bytes(std::io::stdout().lock(), bytes)
}

/// The same, to standard error.
///
/// # Errors
/// The stream's.
pub(crate) fn error_bytes(bytes: &[u8]) -> std::io::Result<()> {
    write_bytes(std::io::stderr().lock(), bytes)
}

fn write_bytes(mut out: impl std::io::Write + std::io::IsTerminal, bytes: &[u8]) -> std::io::Result<()> {
    if out.is_terminal() {
        out.write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes())?;
    } else {
        out.write_all(bytes)?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_can_be_read() {
        for (micros, text) in [
            (0, "0 µs"),
            (245, "245 µs"),
            (9_412, "9.4 ms"),
            (999_999, "999.9 ms"),
            (30_000_000, "30.0 s"),
            (61_250_000, "61.2 s"),
        ] {
            assert_eq!(span(micros), text);
        }
    }

    #[test]
    fn empty_data_leaves_no_line() {
        for (value, text) in [
            (json!(""), ""),
            (json!({}), ""),
            (json!("a\n\nb\n"), "  a\n\n  │ b\n"),
            (json!({ "k": "a\nb", "empty": "" }), "  k      a\n         b\n  empty\n"),
        ] {
            let mut out = Vec::new();
            data(&mut out, &value).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
