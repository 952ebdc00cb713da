//! A client of one server and a session of another: cancellations, answers, and deltas.

use anyhow::{Context, Result, bail};
use serde_json::json;
use tokio::runtime::Runtime;
use windlass_testkit::PostgresServer;

use super::fleet::{Fleet, Watch};
use super::shares;
use crate::clock::now;
use crate::figures::milliseconds;
use crate::figures::server::{Running, request, stamped};
use crate::lab::Lab;
use crate::report::{Figure, Target};
use crate::server::ServeOptions;
use crate::wire::Wire;

/// Measures turns that are cancelled through another server.
pub(super) fn cancel(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Figure> {
    let options = ServeOptions {
        deltas: 2_000,
        delay_ms: 20,
        ..ServeOptions::new(Wire::Anthropic, 0)
    };
    let times = measured(
        lab,
        postgres,
        runtime,
        &options,
        async |owner, server, session, watch| {
            owner.say(session).await?;
            watch.until("delta").await?;
            let sent = now();
            let path = format!("/api/sessions/{session}/cancel");
            let body = json!({});
            let (_, ended) = tokio::try_join!(server.post(&path, &body), watch.until("canceled"))?;
            Ok(milliseconds(sent, ended.at))
        },
    )?;
    Ok(figure(
        "cancellation through another server until the turn has ended",
        &times,
    ))
}

/// Measures permission requests that are answered through another server.
pub(super) fn answer(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Figure> {
    let options = ServeOptions {
        write: true,
        ..ServeOptions::new(Wire::Anthropic, 1)
    };
    let times = measured(
        lab,
        postgres,
        runtime,
        &options,
        async |owner, server, session, watch| {
            owner.say(session).await?;
            let asked = watch.until("permission_request").await?;
            let call = asked.event["call_id"].as_str();
            let call = call.with_context(|| format!("no call: {}", asked.event))?;
            let sent = now();
            let path = format!("/api/sessions/{session}/replies/{call}");
            let address = server.address();
            let reply = async { request(&address, "POST", &path, r#"{"answer":"once"}"#).await };
            let ((status, _), heard) = tokio::try_join!(reply, watch.until("permission_answer"))?;
            if status != 204 {
                bail!("the answer was refused: {status}");
            }
            watch.until("final").await?;
            Ok(milliseconds(sent, heard.at))
        },
    )?;
    Ok(figure(
        "answer through another server until the owner has it",
        &times,
    ))
}

/// Repeats a turn on one server that another one interferes with.
fn measured(
    lab: &Lab,
    postgres: &PostgresServer,
    runtime: &Runtime,
    options: &ServeOptions,
    once: impl AsyncFn(&Running, &Running, &str, &mut Watch) -> Result<f64>,
) -> Result<Vec<f64>> {
    let rounds = if lab.quick { 10 } else { 100 };
    let model = lab.serve(options)?;
    let fleet = Fleet::new(lab, postgres)?;
    let owner = fleet.server(&model, &["--mode", "ask"])?;
    let server = fleet.server(&model, &["--mode", "ask"])?;
    let times = runtime.block_on(async {
        let session = owner.create().await?;
        let mut watch = Watch::open(owner.address(), &session).await?;
        let mut times = Vec::new();
        for _ in 0..rounds {
            times.push(once(&owner, &server, &session, &mut watch).await?);
        }
        anyhow::Ok(times)
    })?;
    owner.stop()?;
    server.stop()?;
    model.finish()?;
    Ok(times)
}

fn figure(name: &str, times: &[f64]) -> Figure {
    let (half, late) = shares(times);
    Figure {
        name: format!("{name}, 99 of 100"),
        agent: format!("p50 {half:.1} ms, of {}", times.len()),
        floor: "–".to_owned(),
        value: late,
        unit: "ms",
        target: Target::AtMost(150.0),
    }
}

/// Measures the delay of deltas to a client of another server, beside one of the owner.
pub(super) fn deltas(lab: &Lab, postgres: &PostgresServer, runtime: &Runtime) -> Result<Vec<Figure>> {
    let count = if lab.quick { 100 } else { 1_000 };
    let model = lab.serve(&stamped(count, 5))?;
    let fleet = Fleet::new(lab, postgres)?;
    let (owner, server) = (fleet.server(&model, &[])?, fleet.server(&model, &[])?);
    let (direct, over) = runtime.block_on(async {
        let session = owner.create().await?;
        let direct = Watch::open(owner.address(), &session).await?;
        let over = Watch::open(server.address(), &session).await?;
        let (direct, over) = (tokio::spawn(all(direct)), tokio::spawn(all(over)));
        owner.say(&session).await?;
        anyhow::Ok((direct.await??, over.await??))
    })?;
    owner.stop()?;
    server.stop()?;
    model.finish()?;
    if direct.len() != count || over.len() != count {
        bail!("{} and {} deltas of {count} arrived", direct.len(), over.len());
    }
    let (direct, over) = (shares(&direct), shares(&over));
    let figure = |share: &str, (over, direct): (f64, f64), target: f64| Figure {
        name: format!("a delta to a client of another server, {share} of 100 (floor: of the owner)"),
        agent: format!("{over:.2} ms"),
        floor: format!("{direct:.2} ms"),
        value: over,
        unit: "ms",
        target: Target::AtMost(target),
    };
    Ok(vec![
        figure("50", (over.0, direct.0), 5.0),
        figure("99", (over.1, direct.1), 40.0),
    ])
}

/// Returns the delays of all deltas of a turn.
async fn all(mut watch: Watch) -> Result<Vec<f64>> {
    let mut delays = Vec::new();
    loop {
        let seen = watch.next().await?;
        match seen.event["type"].as_str() {
            Some("delta") => delays.extend(seen.delays),
            Some("final") => return Ok(delays),
            _ => {}
        }
    }
}
