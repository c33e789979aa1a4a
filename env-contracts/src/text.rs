//! Text of strangers, made fit to be looked at.

/// Makes text safe to show: control characters, escape sequences and
/// characters that reorder or hide text are shown as escapes. Line breaks and
/// tabs stay.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if is_odd(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// The same on one line.
pub fn escaped_line(text: &str) -> String {
    escaped(text).replace('\n', "\\n").replace('\t', " ")
}

/// Makes JSON text safe to show: it stays JSON and says the same.
pub fn escaped_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        match c {
            // Between values; in a string JSON has them escaped already.
            '\n' | '\r' | '\t' => out.push(c),
            c if is_odd(c) => {
                c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
            }
            c => out.push(c),
        }
    }
    out
}

/// What a reader would obey or not see.
fn is_odd(c: char) -> bool {
    c.is_control() || deceives(c)
}

/// Characters that take no space, look like one, or turn the reading
/// direction: with them, text can look like what it is not. They are those
/// that Unicode calls default-ignorable, and the blank letters.
fn deceives(c: char) -> bool {
    matches!(
        c,
        '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn nothing_is_shown_that_a_reader_would_obey_or_miss() {
        assert_eq!(escaped("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(escaped("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(escaped("a\rb\u{7}\u{9b}"), "a\\u{d}b\\u{7}\\u{9b}");
        assert_eq!(escaped("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        assert_eq!(escaped("a\u{3164}\u{2800}\u{fe0f}b"), "a\\u{3164}\\u{2800}\\u{fe0f}b");
        assert_eq!(escaped_line("a\nb"), "a\\nb");
    }

    #[test]
    fn escaped_json_says_the_same() {
        let json = serde_json::to_string_pretty(&serde_json::json!({ "a\u{202e}": "b\u{e0041}\u{1b}\n" })).unwrap();
        let shown = escaped_json(&json);
        assert!(shown.is_ascii(), "{shown}");
        let same = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(same(&shown), same(&json));
    }
}
