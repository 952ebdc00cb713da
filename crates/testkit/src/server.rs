//! The simulated model on its own thread.

use tokio::runtime::Runtime;
use windlass_sim::{Brain, Logged, Script, Sim, SimConfig, SimHandle};

use crate::must;

/// A running simulated model. It has its own threads, so a test need not be asynchronous.
#[derive(Debug)]
pub struct SimServer {
    sim: Option<SimHandle>,
    runtime: Option<Runtime>,
}

impl SimServer {
    /// Serves a script.
    pub fn script(script: Script) -> Self {
        Self::start(SimConfig {
            brain: Brain::script(script),
            ..SimConfig::default()
        })
    }

    /// Serves a script to clients that send the key.
    pub fn script_with_key(script: Script, key: &str) -> Self {
        let api_key = Some(key.to_owned());
        Self::start(SimConfig {
            brain: Brain::script(script),
            api_key,
            ..SimConfig::default()
        })
    }

    /// Starts a server with `config`. Must not be called inside a runtime.
    pub fn start(config: SimConfig) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = must(builder.worker_threads(1).enable_all().build(), "start a runtime");
        let sim = must(runtime.block_on(Sim::start(config)), "start the simulated model");
        Self {
            sim: Some(sim),
            runtime: Some(runtime),
        }
    }

    /// Returns the base URL, without a trailing slash.
    pub fn url(&self) -> String {
        self.sim().url()
    }

    /// Returns all requests so far that had the right key.
    pub fn requests(&self) -> Vec<Logged> {
        self.sim().requests()
    }

    /// Returns the number of requests so far.
    pub fn count(&self) -> usize {
        self.requests().len()
    }

    /// Returns the outline of each request, one line per item.
    pub fn outlines(&self) -> Vec<String> {
        self.requests()
            .iter()
            .map(|request| request.seen.outline())
            .collect()
    }

    /// Fails the test if a request was not valid for its wire.
    #[track_caller]
    pub fn assert_valid(&self) {
        let violations = self.sim().violations();
        assert!(violations.is_empty(), "invalid requests: {violations:#?}");
    }

    fn sim(&self) -> &SimHandle {
        match &self.sim {
            Some(sim) => sim,
            None => unreachable!("the server is taken only when it is dropped"),
        }
    }
}

impl Drop for SimServer {
    fn drop(&mut self) {
        drop(self.sim.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
