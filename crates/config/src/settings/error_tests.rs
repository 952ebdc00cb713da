//! Every message, verbatim: location, key, problem and fix.

use super::explain;
use super::fixture_tests::Bed;

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(Bed::new().user(text).problems(), *expected, "in {text:?}");
    }
}

const NO_SECRETS: &str =
    "keys never live in config files; use `key_env` (the name of an environment variable) or `key_command`";

/// CFG-1
#[test]
fn unknown_keys_name_the_nearest() {
    check(&[
        (
            "[agent]\n\nmax_iteration = 5",
            "config.toml:3:1: agent.max_iteration: unknown key; did you mean `agent.max_iterations`?",
        ),
        (
            "agent.Max-Iterations = 5",
            "config.toml:1:7: agent.Max-Iterations: unknown key; did you mean `agent.max_iterations`?",
        ),
        (
            "modle = \"x\"",
            "config.toml:1:1: modle: unknown key; did you mean `model`?",
        ),
        (
            "[agens]\nmodel = 1",
            "config.toml:1:2: agens: unknown key; did you mean `agent`?",
        ),
        (
            "[providers.x]\nbaseurl = \"y\"",
            "config.toml:2:1: providers.x.baseurl: unknown key; did you mean `providers.x.base_url`?",
        ),
        (
            "[models.x]\nprices = { input = 1 }",
            "config.toml:2:1: models.x.prices: unknown key; did you mean `models.x.price`?",
        ),
        (
            "[models.x.price]\ncached_read = 1",
            "config.toml:2:1: models.x.price.cached_read: unknown key; did you mean `models.x.price.cache_read`?",
        ),
    ]);
}

/// CFG-1
#[test]
fn keys_of_another_section_name_the_right_one() {
    check(&[
        (
            "max_iterations = 5",
            "config.toml:1:1: max_iterations: unknown key; did you mean `agent.max_iterations`?",
        ),
        (
            "[agent]\ntimeout_secs = 5",
            "config.toml:2:1: agent.timeout_secs: unknown key; did you mean `tools.timeout_secs`?",
        ),
        (
            "[tools]\nmax_output_tokens = 5",
            "config.toml:2:1: tools.max_output_tokens: unknown key; did you mean `agent.max_output_tokens`?",
        ),
        (
            "[compaction]\nauto_compact = true\nfoo = 1",
            "config.toml:2:1: compaction.auto_compact: unknown key; did you mean `context.auto_compact`?\n\
             config.toml:3:1: compaction.foo: unknown key; known here: provider, model, fallback, store, agent, agents, autonomy, tools, retry, \
             timeouts, context, memory, code, security, session, server, channel, checkpoints, tui, telemetry, log, providers, models, mcp, mcp_servers",
        ),
        (
            "base_url = \"x\"",
            "config.toml:1:1: base_url: unknown key; did you mean `providers.<name>.base_url`?",
        ),
    ]);
}

/// CFG-1
#[test]
fn keys_like_no_other_list_what_is_there() {
    check(&[
        (
            "[retry]\nzebra = 1",
            "config.toml:2:1: retry.zebra: unknown key; known here: max_retries, max_delay_secs, fallback_secs",
        ),
        (
            "[zebra]",
            "config.toml:1:2: zebra: unknown key; known here: provider, model, fallback, store, agent, agents, autonomy, tools, retry, timeouts, \
             context, memory, code, security, session, server, channel, checkpoints, tui, telemetry, log, providers, models, mcp, mcp_servers",
        ),
        (
            "[models.gpt-5.1]\nimages = true",
            "config.toml:1:15: models.gpt-5.1: unknown key; a name with dots is quoted: `models.\"gpt-5.1\"`",
        ),
    ]);
}

/// CFG-1
#[test]
fn values_of_the_wrong_type_say_what_was_expected() {
    check(&[
        (
            "[agent]\nmax_iterations = \"ten\"",
            "config.toml:2:18: agent.max_iterations: expected an integer, found string \"ten\"",
        ),
        (
            "agent.max_iterations = 1.5",
            "config.toml:1:24: agent.max_iterations: expected an integer, found float 1.5",
        ),
        (
            "model = 5",
            "config.toml:1:9: model: expected a string, found integer 5",
        ),
        (
            "context.auto_compact = \"yes\"",
            "config.toml:1:24: context.auto_compact: expected true or false, found string \"yes\"",
        ),
        (
            "tools.timeout_secs = true",
            "config.toml:1:22: tools.timeout_secs: expected a number of seconds, found boolean true",
        ),
        (
            "agent.max_cost_usd = [1]",
            "config.toml:1:22: agent.max_cost_usd: expected a number, found an array",
        ),
        (
            "tools.execution = 2026-01-01",
            "config.toml:1:19: tools.execution: expected one of \"auto\", \"parallel\", \"sequential\", found datetime \
             2026-01-01",
        ),
        (
            "agent = 5",
            "config.toml:1:9: agent: expected a table, found integer 5",
        ),
        (
            "[[agent]]",
            "config.toml:1:3: agent: expected a table, found an array of tables",
        ),
        (
            "[agent.max_iterations]",
            "config.toml:1:8: agent.max_iterations: expected an integer, found a table",
        ),
        (
            "[provider.x]\nbase_url = \"http://y\"",
            "config.toml:1:2: provider: expected a string, found a table; did you mean `providers`?",
        ),
        (
            "[providers]\nbase_url = \"http://y\"",
            "config.toml:2:12: providers.base_url: expected a table, found string \"http://y\"; did you mean \
             `providers.<name>.base_url`?",
        ),
        (
            "providers.x.key_command = [\"a\", 1]",
            "config.toml:1:27: providers.x.key_command: expected a string or an array of strings, found an array",
        ),
        (
            "providers.x.key_command = []",
            "config.toml:1:27: providers.x.key_command: expected a command, found an empty one",
        ),
        (
            "model = \" \"",
            "config.toml:1:9: model: expected a string of one line that is not empty",
        ),
    ]);
}

/// CFG-1
#[test]
fn values_out_of_range_name_the_range() {
    check(&[
        (
            "agent.max_iterations = 0",
            "config.toml:1:24: agent.max_iterations: out of range: expected an integer at least 1, found 0",
        ),
        (
            "retry.max_retries = 21",
            "config.toml:1:21: retry.max_retries: out of range: expected an integer from 0 to 20, found 21",
        ),
        (
            "retry.max_retries = -1",
            "config.toml:1:21: retry.max_retries: out of range: expected an integer from 0 to 20, found -1",
        ),
        (
            "context.hard_threshold = 1",
            "config.toml:1:26: context.hard_threshold: out of range: expected a number from 0.1 to 0.99, found 1",
        ),
        (
            "context.hard_threshold = nan",
            "config.toml:1:26: context.hard_threshold: out of range: expected a number from 0.1 to 0.99, found NaN",
        ),
        (
            "tools.timeout_secs = 1e9",
            "config.toml:1:22: tools.timeout_secs: out of range: expected a number from 0.1 to 86400, found 1000000000",
        ),
    ]);
}

/// CFG-1
#[test]
fn choices_list_their_words() {
    check(&[
        (
            "agent.on_max_iterations = \"sumary\"",
            "config.toml:1:27: agent.on_max_iterations: expected one of \"summary\", \"message\", found string \
             \"sumary\"; did you mean \"summary\"?",
        ),
        (
            "agent.reasoning = \"zebra\"",
            "config.toml:1:19: agent.reasoning: expected one of \"off\", \"low\", \"medium\", \"high\", found string \
             \"zebra\"",
        ),
        (
            "providers.x.wire = \"openai\"",
            "config.toml:1:20: providers.x.wire: expected one of \"anthropic-messages\", \"openai-chat\", \
             \"openai-responses\", \"gemini\", found string \"openai\"",
        ),
    ]);
}

/// PROV-11
#[test]
fn keys_in_files_are_refused_and_not_repeated() {
    let refused = [
        ("[providers.x]\nkey = \"sk-1234\"", "2:1: providers.x.key"),
        ("[providers.x]\napi_key = \"sk-1234\"", "2:1: providers.x.api_key"),
        ("[providers.x]\ntoken = \"sk-1234\"", "2:1: providers.x.token"),
        (
            "[providers.x]\nAuth-Token = \"sk-1234\"",
            "2:1: providers.x.Auth-Token",
        ),
        ("anthropic_api_key = \"sk-1234\"", "1:1: anthropic_api_key"),
    ];
    for (text, place) in refused {
        assert_eq!(
            Bed::new().user(text).problems(),
            format!("config.toml:{place}: {NO_SECRETS}")
        );
    }
    let others = [
        (
            "key_env = \"sk-1234\"",
            "1:23: providers.x.key_env: expected the name of an environment variable; ",
        ),
        (
            "base_url = \"https://u:sk-1234@x\"",
            "1:24: providers.x.base_url: an address may not hold a name and password; ",
        ),
        (
            "headers.authorization = \"sk-1234\"",
            "1:21: providers.x.headers.authorization: this header carries a key, and ",
        ),
    ];
    for (text, expected) in others {
        let problems = Bed::new().user(format!("providers.x.{text}")).problems();
        assert_eq!(problems, format!("config.toml:{expected}{NO_SECRETS}"));
    }
    let flag = Bed::new().flag("-c", "providers.x.api_key", "sk-1234").problems();
    assert_eq!(flag, format!("flag -c: providers.x.api_key: {NO_SECRETS}"));
}

/// PROV-11
#[test]
fn names_in_patterns_are_checked() {
    check(&[
        (
            "[providers.\"\"]\nmodel = \"x\"",
            "config.toml:2:1: providers.\"\".model: expected a name for <name>, found an empty one",
        ),
        (
            "providers.x.headers.\"a b\" = \"x\"",
            "config.toml:1:21: providers.x.headers.\"a b\": expected the name of a header: letters, digits and `-`",
        ),
        (
            "providers.x.headers.a = \"b\\nc: d\"",
            "config.toml:1:25: providers.x.headers.a: expected a header value without line breaks and control \
             characters",
        ),
        (
            "providers.x.base_url = \"localhost:8000\"",
            "config.toml:1:24: providers.x.base_url: expected an address such as \"https://api.example.com/v1\"",
        ),
    ]);
}

/// CFG-1
#[test]
fn variables_and_flags_are_checked_like_files() {
    let problems = Bed::new()
        .user("modle = 1")
        .variable("WINDLASS_AGENT_MAX_ITERATIONS", "ten")
        .variable("WINDLASS_TOOLS_EXECUTION", "paralel")
        .flag("--max-turns", "agent.max_iterations", "0")
        .flag("-c", "agent.max_iteration", "5")
        .flag("-c", "agent", "5")
        .flag("-c", "models.gpt-5.1.images", "true")
        .flag("-c", "a b", "5")
        .flag("-c", "context.auto_compact", "1")
        .problems();
    assert_eq!(
        problems,
        "config.toml:1:1: modle: unknown key; did you mean `model`?\n\
         environment WINDLASS_AGENT_MAX_ITERATIONS: agent.max_iterations: expected an integer, found string \"ten\"\n\
         environment WINDLASS_TOOLS_EXECUTION: tools.execution: expected one of \"auto\", \"parallel\", \
         \"sequential\", found string \"paralel\"; did you mean \"parallel\"?\n\
         flag --max-turns: agent.max_iterations: out of range: expected an integer at least 1, found 0\n\
         flag -c: agent.max_iteration: unknown key; did you mean `agent.max_iterations`?\n\
         flag -c: agent: a section; set one of its keys: max_iterations, on_max_iterations, \
         max_incomplete_prompts, max_cost_usd, system_prompt, reasoning, max_output_tokens, goal\n\
         flag -c: models.gpt-5.1.images: unknown key; a name with dots is quoted: `models.\"gpt-5.1\".images`\n\
         flag -c: \"a b\": unknown key; known here: provider, model, fallback, store, agent, agents, autonomy, tools, retry, timeouts, context, \
         memory, code, security, session, server, channel, checkpoints, tui, telemetry, log, providers, models, mcp, mcp_servers\n\
         flag -c: context.auto_compact: expected true or false, found integer 1"
    );
}

/// CFG-1
#[test]
fn what_a_file_says_cannot_command_the_terminal() {
    check(&[(
        "\"\\u001b[2J\u{9b}\" = 1\nagent.reasoning = \"\\u009bx\"",
        "config.toml:1:1: \"\\u001b[2J\\u009b\": unknown key; known here: provider, model, fallback, store, agent, agents, autonomy, tools, \
         retry, timeouts, context, memory, code, security, session, server, channel, checkpoints, tui, telemetry, log, providers, models, mcp, mcp_servers\n\
         config.toml:2:19: agent.reasoning: expected one of \"off\", \"low\", \"medium\", \"high\", found string \
         \"\\u009bx\"",
    )]);
}

/// CFG-1
#[test]
fn all_problems_are_collected_up_to_twenty() {
    let text: String = (0..25).map(|index| format!("zebra_{index} = 1\n")).collect();
    let problems = Bed::new().user(text).problems();
    assert_eq!(problems.lines().count(), 21);
    assert!(problems.contains("config.toml:20:1: zebra_19: "), "{problems}");
    assert!(problems.ends_with("\n… and 5 more"), "{problems}");
}

/// CFG-3
#[test]
fn explaining_an_unknown_key_names_the_nearest() {
    let nearest = |name: &str| explain(name).unwrap_err();
    assert_eq!(
        nearest("max_retries_"),
        "max_retries_: unknown key; did you mean `retry.max_retries`?"
    );
    assert_eq!(
        nearest("timeouts.conect_secs"),
        "timeouts.conect_secs: unknown key; did you mean `timeouts.connect_secs`?"
    );
}
