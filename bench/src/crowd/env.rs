//! The environment of the crowd's sessions: the one that `windlass exec` gives a session without settings.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use windlass_api::SessionInfo;
use windlass_core::compact::{Pressure, Summarize};
use windlass_core::dispatch::CallConfig;
use windlass_core::hook::{Hooks, MiddlewareHook};
use windlass_core::permission::NobodyToAsk;
use windlass_core::provider::{Prefix, Prefixes, Provider};
use windlass_core::run::Config;
use windlass_core::tool::Outputs;
use windlass_service::{SessionFactory, TurnPlan};
use windlass_testkit::{EnvKit, FakeEnv, FakeFactory};
use windlass_tools::builtin;

use crate::parts;

/// Length of the system prompt of Windlass.
const SYSTEM: usize = 1_400;

/// Creates environments that share what the sessions of one run share: the connection to the model, and an
/// equal prefix.
pub(super) fn factory(port: u16, helper: PathBuf, outputs: PathBuf) -> Result<Arc<dyn SessionFactory>> {
    let provider: Arc<dyn Provider> = Arc::new(parts::provider(port)?);
    let kit = EnvKit {
        active: Mutex::new((provider.name().to_owned(), provider.model().id.clone())),
        window: Mutex::new(provider.model().context_window),
        ..EnvKit::default()
    };
    let (kit, prefixes) = (Arc::new(kit), Prefixes::default());
    let make = move |session: &SessionInfo| -> Result<FakeEnv> {
        let config = parts::tools(&helper, outputs.join(session.id.as_str()))?;
        let tools = builtin(&config);
        let prefix = prefixes.share(Prefix {
            system: "Work. ".repeat(SYSTEM / 6),
            tools: tools.specs(),
            ..Prefix::default()
        });
        let execution = Arc::new(parts::execution(session.id.as_str())?);
        let outputs: Option<Arc<dyn Outputs>> = config.outputs.map(|outputs| outputs as _);
        let provider = Arc::clone(&provider);
        Ok(FakeEnv::new(Arc::clone(&kit), move |policy| TurnPlan {
            config: Config {
                prefix: Arc::clone(&prefix),
                calls: CallConfig {
                    tools: tools.clone(),
                    execution: Arc::clone(&execution),
                    policy,
                    ..CallConfig::default()
                },
                hooks: Hooks::new().with(MiddlewareHook(Arc::new(Pressure::default()))),
                ..Config::default()
            },
            provider: Arc::clone(&provider),
            compactor: Some(Arc::new(Summarize::default())),
            approver: Arc::new(NobodyToAsk),
            outputs: outputs.clone(),
            notices: Vec::new(),
        }))
    };
    let factory =
        FakeFactory(move |session: &SessionInfo, _| make(session).map_err(|error| error.to_string()));
    Ok(Arc::new(factory))
}
