//! Whether a command line is one simple command, and which words it has then.

/// What ends a word without being part of one.
pub(super) const OPERATORS: &str = ";&|<>(){}$`!";

/// Characters that mean something to a shell outside of quotes. Whoever needs
/// one as a plain character quotes it.
const SPECIAL: &str = ";&|<>(){}$`*?[]~";

/// Words that are no program where one is expected.
const RESERVED: &[&str] = &[
    "!", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "repeat",
    "select", "then", "time", "until", "while", "[[", "]]",
];

/// The words of a line that is one simple command to every POSIX shell, quotes
/// taken off. `None` where there is more: an operator, an expansion, a
/// redirection, an assignment, a comment, an open quote, a reserved word, or a
/// control character, which terminals and shells read in ways of their own.
pub(super) fn simple(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    // The word that is being read: absent between words, empty for `''`.
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' => break,
                        c if c.is_control() => return None,
                        c => word.push(c),
                    }
                }
            }
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().push(chars.next().filter(|c| !c.is_control())?),
            // At the beginning of a word these are a comment, an expansion of
            // some shells, or history.
            '#' | '=' | '!' if word.is_none() => return None,
            // Before the program it is an assignment.
            '=' if words.is_empty() => return None,
            c if c.is_control() || SPECIAL.contains(c) => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let program = words.first()?;
    (!program.is_empty() && !program.ends_with('/') && !RESERVED.contains(&program.as_str())).then_some(words)
}

/// What stands between double quotes, where backslashes still escape and
/// expansions still happen.
fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '$' | '`' => return None,
            '\\' => match chars.next()? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                c if c.is_control() => return None,
                c => word.extend(['\\', c]),
            },
            c if c.is_control() => return None,
            c => word.push(c),
        }
    }
}
