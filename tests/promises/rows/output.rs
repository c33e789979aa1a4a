//! Standard output and error: bounded, exact, never lost.

use env_contracts::AuditNeed;
use serde_json::json;

use super::{NO_TOOL, Row, row};
use crate::house::House;

/// Standard output as `hostile.wasm` floods it: numbered lines of 64 bytes.
fn flood(bytes: usize) -> Vec<u8> {
    let mut text: Vec<u8> = (0..bytes.div_ceil(64)).flat_map(|line| format!("{line:063}\n").into_bytes()).collect();
    text.truncate(bytes);
    text
}

pub(super) const ROWS: &[Row] = &[
    row("output ends at `limits.output`, to the byte, and is kept until there", capped),
    row("output below the limit is whole: beginning and end at hand, the rest in an artifact", spilled),
    row("audited output is kept whole, however short", audited),
    row("binary output comes back byte for byte", binary),
    row("text output comes back as it was, whatever the script", unicode),
    row("log lines count as output, and no tool floods its reader", logs).of_components(NO_TOOL),
];

fn capped(house: &House) {
    for stream in ["stdout", "stderr"] {
        let act = house.command(&json!({ "do": stream })).text().limit("output = \"100000B\"");
        let seen = act.run().ends("limit-hit(output)");
        assert_eq!(seen.usage.bytes_output, 100_000, "{stream}: {seen:?}");
        let whole = flood(100_000);
        let kept = if stream == "stdout" { &seen.output.stdout } else { &seen.output.stderr };
        let text = kept.text.as_deref().unwrap().as_bytes();
        assert_eq!(kept.total, 100_000);
        assert_eq!(text.len() as u64 + kept.omitted, 100_000);
        let cut = usize::try_from(kept.omitted_at.unwrap()).unwrap();
        assert!(whole.starts_with(&text[..cut]) && whole.ends_with(&text[cut..]), "{stream}: {seen:?}");
        assert_eq!(seen.artifact(stream), whole, "what was cut out is in the artifact");
    }
}

fn spilled(house: &House) {
    let bytes = 5 << 20;
    let act = house.command(&json!({ "do": "stdout", "bytes": bytes })).text().limit("output = \"6MiB\"");
    let seen = act.run().ends("completed(0)");
    let (out, whole) = (&seen.output.stdout, flood(bytes));
    let text = out.text.as_deref().unwrap().as_bytes();
    assert_eq!(out.total, bytes as u64);
    assert_eq!(out.total, out.omitted + text.len() as u64);
    let cut = usize::try_from(out.omitted_at.unwrap()).unwrap();
    assert!(cut > 1000 && text.len() - cut > 1000, "a beginning and an end: {seen:?}");
    assert_eq!(&whole[..cut], &text[..cut]);
    assert_eq!(&whole[bytes - (text.len() - cut)..], &text[cut..]);
    assert_eq!(seen.artifact("stdout"), whole);
    let uri = &seen.artifacts.iter().find(|artifact| artifact.name == "stdout").unwrap().uri;
    assert_eq!(out.artifact.as_ref(), Some(uri));
}

fn audited(house: &House) {
    let told = json!({ "do": "nothing" });
    assert!(house.command(&told).run().succeeds().artifacts.is_empty());
    let seen = house.command(&told).asking(|submission| submission.request.audit = AuditNeed::Output).run();
    assert_eq!(seen.succeeds().artifact("stdout"), b"{}\n");
}

fn binary(house: &House) {
    let bytes: Vec<u8> = (0..=255).rev().collect();
    let seen = house.command(&json!({ "do": "bytes", "bytes": bytes })).text().run().succeeds();
    let base64 = seen.output.stdout.base64.as_deref().unwrap();
    assert_eq!(data_encoding::BASE64.decode(base64.as_bytes()).unwrap(), bytes);
    assert_eq!((seen.output.stdout.text.as_deref(), seen.output.stdout.total), (None, 256));
}

fn unicode(house: &House) {
    let text = "grüße \u{1f9e4} \u{202e}evil\u{0}\u{1b}[31m \u{e000} e\u{301}\n\r\ttail";
    let seen = house.command(&json!({ "do": "bytes", "bytes": text.as_bytes() })).text().run().succeeds();
    assert_eq!((seen.out(), seen.data().as_str()), (text, Some(text)));
    let printed = json!(text).to_string();
    let seen = house.command(&json!({ "do": "bytes", "bytes": printed.as_bytes() })).run().succeeds();
    assert_eq!(seen.data().as_str(), Some(text));
    if house.has_components() {
        let seen = house.tool(&json!({ "do": "result", "content": printed })).run().succeeds();
        assert_eq!(seen.data().as_str(), Some(text));
    }
}

fn logs(house: &House) {
    let told = json!({ "do": "log", "level": "warn", "count": 100, "message": "m", "bytes": 1_000 });
    let act = house.tool(&told).limit("output = \"10000B\"");
    let seen = act.run().ends("limit-hit(output)");
    assert!(seen.usage.bytes_output <= 11_000, "{seen:?}");
    let told = json!({ "do": "log", "level": "warn", "count": 5_000, "message": "m", "bytes": 10_000 });
    let seen = house.tool(&told).limit("output = \"64MiB\"").run().succeeds();
    let artifact = String::from_utf8(seen.artifact("stderr")).unwrap();
    let (lines, dropped) = artifact.lines().partition::<Vec<_>, _>(|line| line.starts_with("[warn] m"));
    assert!(lines.len() >= 200 && lines.len() < 1_000, "{} lines", lines.len());
    assert!(lines.iter().all(|line| line.len() <= (4 << 10) + 16));
    assert!(dropped.iter().any(|line| line.contains(&format!("{} log lines", 5_000 - lines.len()))), "{dropped:?}");
}
