//! `glovebox trace`: the story of a task, as a tree of what happened because of
//! what.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::process::ExitCode;

use env_contracts::Problem;
use glovebox_plane::{Trace, TraceNode};

use super::action::when;
use super::printed;
use crate::args::TraceArgs;
use crate::config::Config;
use crate::terminal::escaped_line;
use crate::{house, print, who};

/// The most characters of a text on its line; `--json` has all of it.
const WIDTH: usize = 160;

/// The deepest indent; what lies deeper stands below each other.
const DEEPEST: usize = 12;

pub(crate) fn run(args: &TraceArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let trace = service.trace(&who::requester_of_answers(config), &args.task)?;
    if args.json {
        return printed(print::json(&trace), 0);
    }
    printed(tree(&mut anstream::stdout().lock(), &trace, 0), 0)
}

/// Writes a story, and those below it.
fn tree(out: &mut impl Write, trace: &Trace, indent: usize) -> io::Result<()> {
    let known: BTreeSet<&str> = trace.nodes.iter().map(|node| node.id.as_str()).collect();
    let mut children: BTreeMap<&str, Vec<&TraceNode>> = BTreeMap::new();
    let mut roots = Vec::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for node in &trace.nodes {
        // The first cause that is in this story, and that came before.
        let parent = node.parents.iter().find(|parent| seen.contains(parent.as_str()));
        match parent.and_then(|parent| known.get(parent.as_str())) {
            Some(parent) => children.entry(parent).or_default().push(node),
            None => roots.push(node),
        }
        seen.insert(&node.id);
    }
    let mut open: Vec<(&TraceNode, usize)> = roots.into_iter().rev().map(|node| (node, indent)).collect();
    while let Some((node, depth)) = open.pop() {
        line(out, node, depth)?;
        let below = children.remove(node.id.as_str()).unwrap_or_default();
        open.extend(below.into_iter().rev().map(|child| (child, (depth + 1).min(DEEPEST))));
    }
    if trace.cut {
        writeln!(out, "(it goes on; `--json` and `glovebox audit export` have more)")?;
    }
    for below in &trace.below {
        let agent = below.task.principal.agent.as_ref().map_or_else(String::new, |agent| format!(" by {agent}"));
        writeln!(out, "{}session {}{agent}", "  ".repeat(indent + 1), below.task.session)?;
        tree(out, below, (indent + 2).min(DEEPEST))?;
    }
    Ok(())
}

fn line(out: &mut impl Write, node: &TraceNode, depth: usize) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    let text = node.text.as_deref().map(|text| cut(&escaped_line(text))).unwrap_or_default();
    writeln!(out, "{} {indent}{}  {}  {text}", when(node.at_ms), escaped_line(&node.what), node.by)?;
    for then in &node.then {
        writeln!(out, "{} {indent}  - {}", " ".repeat(when(node.at_ms).len()), cut(&escaped_line(then)))?;
    }
    Ok(())
}

fn cut(text: &str) -> String {
    if text.chars().count() <= WIDTH {
        return text.to_owned();
    }
    text.chars().take(WIDTH - 1).chain(['…']).collect()
}
