//! Delivery of results: apart from the run, with attempts of its own.

use std::path::Path;

use tokio_util::sync::CancellationToken;
use windlass_core::clock::Timestamp;
use windlass_core::log::{Delivered, Delivery, SlotKey, SlotState};

use super::{JobReport, RunEnd, SchedulerPorts};
use crate::job::{CronJob, DeliveryTarget};
use crate::plan::pause;

/// Maximum number of attempts, over about five hours.
const MAX_ATTEMPTS: u32 = 10;
/// Maximum number of deliveries at a time.
const AT_ONCE: usize = 32;
/// Time for one attempt.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Returns the deliveries of a result: a place and a text each.
pub(super) fn deliveries(
    job: &CronJob,
    key: &SlotKey,
    end: &RunEnd,
    session: Option<String>,
) -> Vec<(String, String)> {
    if matches!(end.state, SlotState::SkippedCondition | SlotState::SkippedOverlap) {
        return Vec::new();
    }
    let report = JobReport {
        job: job.id.clone(),
        time: job.schedule.local(key.slot),
        slot: key.slot.0,
        state: end.state,
        detail: end.detail.clone(),
        session,
        output: end.output.clone(),
    };
    let Ok(body) = serde_json::to_string(&report) else {
        return Vec::new();
    };
    let targets = job.deliver.iter();
    targets
        .map(|target| (placed(target, job, &report).to_string(), body.clone()))
        .collect()
}

/// Replaces a path by the full one: the job may be gone when the result is delivered.
fn placed(target: &DeliveryTarget, job: &CronJob, report: &JobReport) -> DeliveryTarget {
    let DeliveryTarget::File(path) = target else {
        return target.clone();
    };
    let slot: String = report.time.chars().take("2026-01-01 00:00:00".len()).collect();
    let slot = slot.replace(' ', "T").replace(':', "-");
    let path = path.replace("{job}", &job.id).replace("{slot}", &slot);
    DeliveryTarget::File(job.work.folder.join(Path::new(&path)).display().to_string())
}

/// Makes every delivery that is due.
pub(super) async fn deliver_all(ports: &SchedulerPorts, stop: &CancellationToken) {
    for _ in 0..AT_ONCE {
        if stop.is_cancelled() {
            return;
        }
        let now = ports.clock.now();
        let Ok(Some(delivery)) = ports.store.due_delivery(&ports.owner, now).await else {
            return;
        };
        let outcome = attempt(ports, &delivery).await;
        let Delivery { key, target, .. } = &delivery;
        let told = match &outcome {
            Delivered::Never(why) => Some(format!("the result was not delivered to {target}: {why}")),
            Delivered::Again(_, why) if delivery.attempts == 0 => Some(format!(
                "the result could not be delivered to {target}; will retry: {why}"
            )),
            Delivered::Again(..) | Delivered::Yes => None,
        };
        if let Some(told) = told {
            (ports.tell)(format!("{}: {told}", key.job));
        }
        if ports.store.settle_delivery(delivery.id, &outcome).await.is_err() {
            return;
        }
    }
}

async fn attempt(ports: &SchedulerPorts, delivery: &Delivery) -> Delivered {
    let report = serde_json::from_str::<JobReport>(&delivery.body);
    let (target, report) = match (delivery.target.parse::<DeliveryTarget>(), report) {
        (Ok(target), Ok(report)) => (target, report),
        (Err(why), _) => return Delivered::Never(why),
        (_, Err(error)) => return Delivered::Never(error.to_string()),
    };
    let delivered = tokio::select! {
        delivered = ports.courier.deliver(&target, &report) => delivered,
        () = ports.clock.sleep(PATIENCE) => Err("no answer within 30 s".to_owned()),
    };
    let attempts = delivery.attempts + 1;
    match delivered {
        Ok(()) => Delivered::Yes,
        Err(why) if attempts >= MAX_ATTEMPTS => Delivered::Never(why),
        Err(why) => Delivered::Again(Timestamp(ports.clock.now().0 + pause(attempts)), why),
    }
}
