//! `glovebox questions`: what loops want to know, and what people answer.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use env_contracts::{Code, Id, Principal, Problem, Span};
use glovebox_events::{Origin, QuestionState};
use glovebox_plane::{ActionService, NewQuestion, QuestionReply, QuestionText, QuestionView};
use glovebox_store::QuestionFilter;

use super::action::when;
use super::{files, printed};
use crate::args::QuestionsCommand;
use crate::config::Config;
use crate::terminal::escaped_line;
use crate::{house, print, who};

/// How this door is called in answers.
const CHANNEL: &str = "cli";

/// The longest question that is read, in bytes: far more than one may have.
const MAX_READ: u64 = 64 * 1024;

pub(crate) fn run(command: QuestionsCommand, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let tokio = house::tokio_runtime()?;
    let channel = CHANNEL.parse().map_err(|error: String| Problem::new(Code::BackendError, error))?;
    let asker = who::requester_of_answers(config);
    match command {
        QuestionsCommand::List { all, json } => {
            tokio.block_on(service.recover())?;
            let states = if all { Vec::new() } else { vec![QuestionState::Pending] };
            let filter = QuestionFilter { states, ..QuestionFilter::default() };
            let page = service.questions(&asker, &filter)?;
            if json {
                return printed(print::json(&serde_json::json!({ "questions": page.items, "next": page.next })), 0);
            }
            printed(page.items.iter().try_for_each(written), 0)
        }
        QuestionsCommand::Show(args) => {
            let id = whole(&service, &asker, &args.id)?;
            shown(&service.question_of(&asker, &id)?, args.json)
        }
        QuestionsCommand::Answer { id, option, say, who, json } => {
            let by = who::actor(config, &who)?;
            let id = whole(&service, &by, &id)?;
            let reply = QuestionReply { option, text: say };
            shown(&tokio.block_on(service.answer_question(&by, &id, reply, &channel))?, json)
        }
        QuestionsCommand::Ask { file, task, turn, topic, induced_by, lasts, who } => {
            let by = who::actor(config, &who)?;
            let text: QuestionText = serde_json::from_str(&read(&file)?)
                .map_err(|error| Problem::new(Code::QuestionRefused, format!("the question: {error}")))?;
            let millis = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
            let asked = NewQuestion { task, turn, topic, text, induced_by, lasts_ms: lasts.map(millis) };
            shown(&tokio.block_on(service.ask(&by, asked))?, true)
        }
        QuestionsCommand::PassOn { id, who } => {
            let by = who::actor(config, &who)?;
            let id = whole(&service, &by, &id)?;
            shown(&tokio.block_on(service.pass_on(&by, &id))?, true)
        }
        QuestionsCommand::Merge { id, into, who } => {
            let by = who::actor(config, &who)?;
            let (id, into) = (whole(&service, &by, &id)?, whole(&service, &by, &into)?);
            shown(&tokio.block_on(service.merge(&by, &id, &into))?, true)
        }
        QuestionsCommand::Withdraw { id, unsupported, who } => {
            let by = who::actor(config, &who)?;
            let id = whole(&service, &by, &id)?;
            let view = if unsupported {
                tokio.block_on(service.cannot_ask(&by, &id, &channel))?
            } else {
                tokio.block_on(service.withdraw_question(&by, &id))?
            };
            shown(&view, true)
        }
    }
}

fn read(file: &std::path::Path) -> Result<String, Problem> {
    if file.as_os_str() != "-" {
        return files::read_text(file);
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MAX_READ + 1).read_to_string(&mut text);
    read.map_err(|error| Problem::new(Code::Usage, format!("standard input: {error}")))?;
    if text.len() as u64 > MAX_READ {
        return Err(Problem::new(Code::QuestionRefused, format!("the question has more than {MAX_READ} bytes")));
    }
    Ok(text)
}

/// The question that this id is, or begins.
fn whole(service: &ActionService, principal: &Principal, id: &Id) -> Result<Id, Problem> {
    if service.question_of(principal, id).is_ok() {
        return Ok(id.clone());
    }
    let all = service.questions(principal, &QuestionFilter::default())?.items;
    super::only(id, "question", Code::QuestionUnknown, all.iter().map(|view| &view.question.id))
}

fn shown(view: &QuestionView, json: bool) -> Result<ExitCode, Problem> {
    if json {
        return printed(print::json(view), 0);
    }
    printed(written(view), 0)
}

fn written(view: &QuestionView) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let question = &view.question;
    let by = question.principal.agent.as_ref().unwrap_or(&question.principal.user);
    writeln!(
        out,
        "{}  {}  {}  task {}  asked by {by}",
        question.id,
        question.state.as_str(),
        question.topic,
        question.task
    )?;
    if !question.principal.chain.is_empty() {
        let chain: Vec<&str> = question.principal.chain.iter().map(env_contracts::Name::as_str).collect();
        writeln!(out, "  called by {}", chain.join(" > "))?;
    }
    match &view.words {
        Some(words) => {
            // Everything that follows are a model's words.
            writeln!(out, "  {}", escaped_line(&words.question))?;
            for option in &words.options {
                let mark = if option.id == words.recommended { " (it recommends this)" } else { "" };
                writeln!(out, "    {}{mark}: {}", option.id, escaped_line(&option.label))?;
                writeln!(out, "      {}", escaped_line(&option.effect))?;
            }
            let affects: Vec<String> = words.affects.iter().map(|text| escaped_line(text)).collect();
            writeln!(out, "  affects: {}", affects.join("; "))?;
        }
        None => writeln!(out, "  (its words were erased)")?,
    }
    if let Origin::ToolOutput { action } = &question.origin {
        writeln!(out, "  note: what a tool wrote made it ask (action {action})")?;
    }
    if let Some(answer) = &question.answer {
        let option = answer.option.as_ref().map(Id::as_str).unwrap_or_default();
        let said = view.said.as_deref().map(escaped_line).unwrap_or_default();
        writeln!(out, "  answered by {}: {option} {said}", answer.by)?;
    }
    match question.expires_ms {
        Some(at) if question.state == QuestionState::Pending => writeln!(out, "  until {}", when(at)),
        _ => Ok(()),
    }
}
