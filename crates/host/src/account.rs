//! DIST-7: the user of a session: the limits of their day, and the audit log of what the session does.

use std::sync::{Arc, OnceLock};

use windlass_config::environment;
use windlass_config::settings::{AuditScope, DailyLimits, ServerSettings, Settings};
use windlass_config::{Problem, ProblemKind};
use windlass_core::id::SessionId;
use windlass_core::log::{Store, UserName};
use windlass_users::{AuditedSession, Auditor, AuditorPorts, BudgetLimits, DailyBudget, zone};

/// The user of a session. Clones share the auditor of the run, so that rows of several sessions are written together.
#[derive(Clone, Default)]
pub struct Account {
    /// The user.
    pub user: UserName,
    auditor: Arc<OnceLock<Auditor>>,
}

impl Account {
    /// Returns the account of another user of the same run.
    #[must_use]
    pub fn of(&self, user: &UserName) -> Self {
        Self {
            user: user.clone(),
            auditor: Arc::clone(&self.auditor),
        }
    }

    fn auditor(&self, store: &Arc<dyn Store>) -> Auditor {
        self.auditor.get_or_init(|| auditor(store)).clone()
    }

    /// Returns the session as the audit log sees it; `None` if it is not recorded.
    pub(crate) fn audited(
        &self,
        settings: &Settings,
        store: Option<&Arc<dyn Store>>,
        session: &SessionId,
    ) -> Option<AuditedSession> {
        let scope = settings.agent.session.server.audit.scope;
        let is_recorded = !self.user.is_local() || scope == AuditScope::All;
        let store = store.filter(|_| is_recorded)?;
        Some(AuditedSession {
            auditor: self.auditor(store),
            user: self.user.clone(),
            session: session.clone(),
        })
    }

    /// Returns the limits of the user's day; `None` if there are none.
    ///
    /// # Errors
    /// When the time zone of the settings is unknown.
    pub fn budget(
        &self,
        settings: &Settings,
        store: Option<&Arc<dyn Store>>,
    ) -> Result<Option<DailyBudget>, Problem> {
        let server = &settings.agent.session.server;
        let limits = limits_of(server, &self.user);
        let Some(store) = store.filter(|_| limits.is_limited()) else {
            return Ok(None);
        };
        let name = server.limits.zone.as_deref().unwrap_or("UTC");
        let zone = zone(name)
            .map_err(|error| Problem::new(ProblemKind::Config, format!("server.time_zone: {error}")))?;
        Ok(Some(DailyBudget {
            store: Arc::clone(store),
            clock: environment::clock(),
            user: self.user.clone(),
            limits,
            zone,
            auditor: Some(self.auditor(store)),
        }))
    }
}

/// Returns an auditor of this process.
pub fn auditor(store: &Arc<dyn Store>) -> Auditor {
    Auditor::new(AuditorPorts {
        store: Arc::clone(store),
        clock: environment::clock(),
        server: windlass_store::owner(),
        mask: |text| windlass_providers::key::mask_known_keys(text).unwrap_or_else(|| text.to_owned()),
    })
}

/// Returns the limits of a user: each their own, or the one for all named users.
fn limits_of(server: &ServerSettings, user: &UserName) -> BudgetLimits {
    let own = server.limits.users.get(&user.to_string()).copied();
    let own = own.unwrap_or_default();
    let all = match user.is_local() {
        true => DailyLimits::default(),
        false => server.limits.default,
    };
    BudgetLimits {
        cost_usd: own.cost_usd.or(all.cost_usd),
        tokens: own.tokens.or(all.tokens),
        turns: own.turns.or(all.turns),
    }
}
