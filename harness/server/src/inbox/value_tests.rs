use super::*;

#[test]
fn arguments_are_shown_whole_and_never_as_markup() {
    let long = "x".repeat(5000);
    let json =
        serde_json::json!({ "text": long, "<b>": "<script>alert(1)</script>", "n": 1.0, "s": "1.0" }).to_string();
    let shown = arguments(&json, true).into_string();
    assert!(shown.contains(&long));
    assert!(!shown.contains("<script") && !shown.contains("<b>"), "{shown}");
    assert!(shown.contains("data-long=\"5000 characters, 1 lines\""));
    // A number is not a text that looks like one.
    assert!(shown.contains("<code>1.0</code>") && shown.contains("<code>&quot;1.0&quot;</code>"), "{shown}");
}

#[test]
fn hosts_are_shown_as_they_are_looked_up() {
    let ascii = |text: &str| hosts(text).into_string();
    assert!(ascii("see https://\u{0430}pple.com/login").contains("xn--pple-43d.com"));
    assert!(ascii("https://github.com@evil.example/x").contains("evil.example"));
    assert_eq!(ascii("https://example.com/\u{0430}"), "");
}

#[test]
fn what_turns_the_reading_direction_is_shown_as_an_escape() {
    let shown = arguments(r#"{"file":"\u202egnp.exe"}"#, true).into_string();
    assert!(shown.is_ascii() && shown.contains("\\u202e"), "{shown}");
}
