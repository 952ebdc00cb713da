//! `/provider`, `/model`, `/effort` and `/connect`: the provider and model from the next turn on, and the available
//! ones.

use std::fmt::Write;

use windlass_api::Offer;

use super::{CommandContext, Outcome, Said, Stop, Words};
use crate::environment::{ChooseError, Chosen, ModelChoice};

pub(super) async fn provider(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[])?;
    let models = cx.env.models();
    match words.get(0) {
        None => {
            let active = models.active();
            let name = active.as_ref().map_or("", |(provider, _)| provider);
            let mut text = listed(&models.list(), name);
            if let Err(why) = &active {
                let _ = write!(text, "\n{why}");
            }
            Ok(Said::text(text))
        }
        Some("status") => match models.active() {
            Ok((provider, model)) => Ok(Said::text(format!("Provider: {provider}\nModel: {model}"))),
            Err(why) => Ok(Said::text(why)),
        },
        Some(name) => switch(cx, name).await,
    }
}

fn listed(all: &[ModelChoice], active: &str) -> String {
    if all.is_empty() {
        return "No providers are configured, and no key was found in the environment.".to_owned();
    }
    let mut text = "Configured providers:".to_owned();
    for (number, choice) in all.iter().enumerate() {
        let model = match choice.model.as_str() {
            "" => "to be named",
            model => model,
        };
        let mark = if choice.provider == active {
            " (active)"
        } else {
            ""
        };
        let _ = write!(
            text,
            "\n  {}. {} [{}] model={model}{mark}",
            number + 1,
            choice.provider,
            choice.kind
        );
    }
    text
}

async fn switch(cx: &mut CommandContext<'_>, name: &str) -> Outcome {
    cx.wait_for_turn()?;
    let models = cx.env.models();
    let all = models.list();
    let known = all
        .iter()
        .find(|choice| choice.provider.eq_ignore_ascii_case(name));
    let provider = known.map_or(name, |choice| choice.provider.as_str());
    if models.active().is_ok_and(|(active, _)| active == provider) {
        return Ok(Said::text(format!("Provider '{provider}' is already active.")));
    }
    match models.choose(Some(provider), None).await {
        Ok(chosen) => Ok(told(
            format!(
                "Switched to provider: {} (model: {})",
                chosen.provider, chosen.model
            ),
            &chosen,
        )),
        Err(error) => Err(refused(error, provider, &all)),
    }
}

fn told(mut text: String, chosen: &Chosen) -> Said {
    for notice in &chosen.notices {
        let _ = write!(text, "\n{notice}");
    }
    Said::text(text)
}

fn refused(error: ChooseError, name: &str, all: &[ModelChoice]) -> Stop {
    Stop::Failed(match error {
        ChooseError::Unknown => {
            let names: Vec<&str> = all.iter().map(|choice| choice.provider.as_str()).collect();
            format!("Unknown provider '{name}'. Available: {}", names.join(", "))
        }
        ChooseError::Failed(why) => format!("Failed to switch to '{name}': {why}"),
    })
}

pub(super) async fn model(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[])?;
    let models = cx.env.models();
    let Some(name) = words.get(0) else {
        return Ok(Said::text(match models.active() {
            Ok((provider, model)) => format!("{model} (provider: {provider})"),
            Err(why) => why,
        }));
    };
    cx.wait_for_turn()?;
    let models = cx.env.models();
    let all = models.list();
    match models.choose(None, Some(name)).await {
        Ok(chosen) => Ok(told(
            format!(
                "Switched to model: {} (provider: {})",
                chosen.model, chosen.provider
            ),
            &chosen,
        )),
        Err(error) => Err(refused(error, name, &all)),
    }
}

pub(super) async fn effort(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[])?;
    let Some(effort) = words.get(0) else {
        return Ok(Said::text(cx.env.models().effort()));
    };
    cx.wait_for_turn()?;
    match cx.env.models().set_effort(effort).await {
        Ok(()) => Ok(Said::text(format!("Effort {effort} from the next turn"))),
        Err(ChooseError::Unknown) => Err(Stop::Usage),
        Err(ChooseError::Failed(why)) => Err(Stop::Failed(format!("The effort was not changed: {why}"))),
    }
}

/// A front end that can ask for a secret sets a provider up itself; this command is for the others.
pub(super) async fn connect(cx: &mut CommandContext<'_>, words: &Words<'_>) -> Outcome {
    words.check(1, &[])?;
    let offers = cx.env.models().offers();
    let Some(name) = words.get(0) else {
        let mut text = "Providers:".to_owned();
        for row in Offer::rows(&offers) {
            let _ = write!(text, "\n  {row}");
        }
        text.push_str("\n/connect PROVIDER says how to set one up.");
        return Ok(Said::text(text));
    };
    let found = offers.iter().find(|offer| offer.name.eq_ignore_ascii_case(name));
    match found {
        Some(offer) => Ok(Said::text(how_to(offer))),
        None => {
            let names: Vec<&str> = offers.iter().map(|offer| offer.name.as_str()).collect();
            Err(Stop::Failed(format!(
                "Unknown provider '{name}'. Known: {}",
                names.join(", ")
            )))
        }
    }
}

fn how_to(offer: &Offer) -> String {
    let Offer { name, hint, .. } = offer;
    match (offer.is_ready, offer.needs_key) {
        (true, _) => format!("{name} is ready: {hint}. /provider {name} selects it from the next turn."),
        (false, true) => format!(
            "{name} is not set up: {hint}.\nTo enter its key, type /connect in the terminal UI, pipe it into \
             `windlass connect {name}`, or export the variable before you start."
        ),
        (false, false) => {
            format!("{name} is not set up: {hint}.\n`windlass connect {name}` checks whether it can be used.")
        }
    }
}
