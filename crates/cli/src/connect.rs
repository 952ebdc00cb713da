//! `windlass connect`: sets up a provider from the command line.

use std::io::{IsTerminal, Read};
use std::sync::Arc;

use windlass_api::Offer;

use crate::engine::{not_begun, working_directory};
use crate::exit::Exit;
use crate::session_choice::{SessionChoice, SessionStore};
use crate::terminal::{plain, say, tell_warnings};
use windlass_args::ConnectOptions;
use windlass_config::Problem;
use windlass_config::environment;
use windlass_host::connect::ProviderSetup;
use windlass_host::model_preference::ModelPreference;
use windlass_host::models::Models;

/// Size limit of a key in bytes.
const LONGEST_KEY: u64 = 64 * 1024;

/// Sets up the named provider, or lists all.
pub(crate) async fn command(options: &ConnectOptions) -> Result<Exit, Problem> {
    let cwd = working_directory(None)?;
    let mut given = options.settings.clone();
    // The model is stored with the provider: a setting of this run would not apply to the next one.
    let model = options.name.as_ref().and_then(|_| given.model.take());
    let settings = Arc::new(environment::settings(&given.given(), &cwd)?);
    tell_warnings(&settings.warnings);
    let Some(name) = &options.name else {
        let setup = ProviderSetup::new(Models::new(&settings, None));
        for row in Offer::rows(&setup.offers()) {
            say!("{}", plain(&row));
        }
        return Ok(Exit::Ok);
    };
    let keeper = SessionStore::open(&SessionChoice::Latest)?;
    let remembered = ModelPreference::of_local(&settings, Arc::clone(&keeper.store) as _);
    let setup = ProviderSetup::new(Models::new(&settings, remembered)).asking(model);
    let offers = setup.offers();
    let offer = offers.iter().find(|offer| offer.name.eq_ignore_ascii_case(name));
    let wants_key = offer.is_some_and(|offer| offer.needs_key && !offer.is_ready);
    let key = if options.key || wants_key {
        read_key()?
    } else {
        String::new()
    };
    let told = setup.connect(name, &key).await.map_err(not_begun)?;
    say!("{}", plain(&told));
    Ok(Exit::Ok)
}

/// Reads the key from a pipe. On a terminal it would be visible while it is typed.
fn read_key() -> Result<String, Problem> {
    let input = std::io::stdin();
    if input.is_terminal() {
        let text = "pipe the key to standard input, as in `pass show anthropic | windlass connect anthropic`";
        return Err(Problem::usage(text.to_owned()));
    }
    let mut key = String::new();
    let read = input.lock().take(LONGEST_KEY).read_to_string(&mut key);
    read.map_err(|error| Problem::usage(format!("the key could not be read: {error}")))?;
    match key.trim() {
        "" => Err(Problem::usage("standard input contains no key".to_owned())),
        key => Ok(key.to_owned()),
    }
}
