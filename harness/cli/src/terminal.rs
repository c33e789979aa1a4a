//! Text of strangers on a terminal.

/// Makes text safe to print: control characters, escape sequences and
/// characters that reorder or hide text are shown as escapes. Line breaks and
/// tabs stay.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || deceives(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// The same on one line.
pub(crate) fn escaped_line(text: &str) -> String {
    escaped(text).replace('\n', "\\n").replace('\t', " ")
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
    fn nothing_reaches_the_terminal_that_it_would_obey() {
        assert_eq!(escaped("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(escaped("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(escaped("a\rb\u{7}\u{9b}"), "a\\u{d}b\\u{7}\\u{9b}");
        assert_eq!(escaped("\u{202e}gnp.exe"), "\\u{202e}gnp.exe");
        assert_eq!(escaped("a\u{3164}\u{2800}\u{fe0f}b"), "a\\u{3164}\\u{2800}\\u{fe0f}b");
        assert_eq!(escaped_line("a\nb"), "a\\nb");
    }
}
