//! Rules that are nested too deep to be read: whoever reads them calls itself
//! for each level, and a stack that overflows ends the process.

/// The deepest nesting of brackets: a rule that people read has a handful.
const MAX_DEPTH: usize = 64;

/// The most operators of one rule: `a && b && c` is nested too, once for each.
const MAX_OPERATORS: usize = 1000;

/// The line of the first rule that is nested too deep, and why it is.
pub(crate) fn too_deep(text: &str) -> Option<(usize, String)> {
    let (mut line, mut depth, mut operators) = (1, 0_usize, 0_usize);
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'\n' => line += 1,
            b'"' => rest = string(rest, &mut line),
            b'/' if rest.first() == Some(&b'/') => {
                let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                rest = &rest[end..];
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b';' => operators = 0,
            // `if` and `else` nest like operators, and have letters of these.
            b'&' | b'|' | b'+' | b'-' | b'*' | b'!' | b'.' => operators += 1,
            b'i' if rest.first() == Some(&b'f') => operators += 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Some((
                line,
                format!("brackets are nested more than {MAX_DEPTH} deep: write more, and simpler, rules"),
            ));
        }
        // `&&` and `||` have two characters each.
        if operators > 2 * MAX_OPERATORS {
            let why = format!("one rule has more than {MAX_OPERATORS} operators: write more rules, or a set of values");
            return Some((line, why));
        }
    }
    None
}

/// What follows a string.
fn string<'a>(mut rest: &'a [u8], line: &mut usize) -> &'a [u8] {
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'"' => break,
            b'\\' => rest = rest.get(1..).unwrap_or_default(),
            b'\n' => *line += 1,
            _ => {}
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_of_brackets_and_operators_and_not_of_what_is_said() {
        let nested = |depth: usize| format!("\nx {}{};", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(too_deep(&nested(MAX_DEPTH)), None);
        assert_eq!(too_deep(&nested(MAX_DEPTH + 1)).unwrap().0, 2);
        let chained = |count: usize| format!("x{};", " && x".repeat(count));
        assert_eq!(too_deep(&chained(MAX_OPERATORS).repeat(3)), None);
        assert!(too_deep(&chained(MAX_OPERATORS + 1)).is_some());
        let said = format!("x == \"{}\\\"{}\"; // {}", "(".repeat(500), "[".repeat(500), "{".repeat(500));
        assert_eq!(too_deep(&said), None);
    }
}
