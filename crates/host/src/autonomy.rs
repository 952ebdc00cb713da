//! Work without input: its limits from the settings, and its supervisor.

use std::sync::Arc;

use async_trait::async_trait;
use windlass_config::settings::AutonomySettings;
use windlass_core::provider::Provider;
use windlass_service::{AutonomyLimits, SupervisorLimits, SupervisorModel};

use crate::models::Models;

/// Returns the configured supervisor.
pub(crate) fn supervisor(name: String, models: &Models) -> Arc<dyn SupervisorModel> {
    let models = models.clone();
    Arc::new(Supervisor { name, models })
}

/// GOAL-4: the configured supervisor.
struct Supervisor {
    name: String,
    models: Models,
}

#[async_trait]
impl SupervisorModel for Supervisor {
    async fn provider(&self) -> Result<Arc<dyn Provider>, String> {
        let failed = || {
            let name = &self.name;
            format!("agent.goal.supervisor_provider {name}: there is no such provider, or it cannot be used")
        };
        self.models.other(&self.name).await.ok_or_else(failed)
    }
}

/// Returns the limits of work without input.
pub(crate) fn limits(settings: &AutonomySettings) -> AutonomyLimits {
    AutonomyLimits {
        enabled: settings.enabled,
        max_turns: settings.max_turns,
        max_tokens: settings.max_tokens,
        max_time: settings.max_time,
        max_stuck_count: settings.max_stuck_count,
        max_cost_per_day: settings.max_cost_per_day,
        turn_delay: settings.turn_delay,
        check_timeout: settings.check_timeout,
        answer_timeout: settings.answer_timeout,
        supervisor: SupervisorLimits {
            interval: settings.supervisor.interval,
            timeout: settings.supervisor.timeout,
            max_fails: settings.supervisor.max_fails,
        },
    }
}
