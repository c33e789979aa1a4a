//! "Did you mean …?"

/// Names longer than this are not compared: the work is quadratic, and nobody
/// mistypes them.
const MAX_COMPARED: usize = 64;

/// The candidate that a mistyped name most likely stands for, if any is near:
/// at most one slip (a letter too many, too few, wrong, or two swapped) for
/// every three letters. The first of equally near ones.
///
/// ```
/// use glovebox_plane::arguments::nearest;
/// assert_eq!(nearest("pth", ["pattern", "path"]), Some("path"));
/// assert_eq!(nearest("colour", ["path"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(MAX_COMPARED + 1).collect();
    if name.len() > MAX_COMPARED {
        return None;
    }
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other: Vec<char> = candidate.to_lowercase().chars().take(MAX_COMPARED + 1).collect();
            let allowed = name.len().max(other.len()).div_ceil(3);
            let slips = (other.len() <= MAX_COMPARED).then(|| distance(&name, &other))?;
            (slips <= allowed && slips < name.len()).then_some((slips, candidate))
        })
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

/// Optimal string alignment distance.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let wrong = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = wrong.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_and_nothing_else() {
        let known = ["path", "pattern", "max_lines", "query"];
        let cases = [
            ("pth", Some("path")),
            ("paht", Some("path")),
            ("Path", Some("path")),
            ("maxlines", Some("max_lines")),
            ("qurey", Some("query")),
            ("", None),
            ("x", None),
            ("depth_first", None),
        ];
        for (name, expected) in cases {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
        assert_eq!(nearest(&"p".repeat(1_000_000), known), None);
    }
}
