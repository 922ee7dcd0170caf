//! From files, variables and options to one configuration, and back to its output.

use std::{collections::BTreeMap, fs, path::Path};

use tempfile::TempDir;
use toml::Value;

use super::{
    key::ConfigKey,
    known::KnownKeys,
    layer::{SettingOrigin, flattened},
    *,
};

/// A user with a home directory, variables and options.
struct User {
    home: TempDir,
    variables: BTreeMap<&'static str, String>,
    overrides: Vec<String>,
    flags: Vec<ConfigFlag>,
}

impl User {
    fn new() -> Self {
        let variables = BTreeMap::from([("HOME", "/users/me".to_owned())]);
        Self { home: tempfile::tempdir().unwrap(), variables, overrides: Vec::new(), flags: Vec::new() }
    }

    fn file(self, text: impl AsRef<[u8]>) -> Self {
        fs::write(file(self.home.path()), text).unwrap();
        self
    }

    fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.insert(name, value.to_owned());
        self
    }

    fn says(mut self, text: &str) -> Self {
        self.overrides.push(text.to_owned());
        self
    }

    fn flag(mut self, name: &'static str, key: &'static str, value: impl Into<Value>) -> Self {
        self.flags.push(ConfigFlag { name, key, value: value.into() });
        self
    }

    fn load(&self) -> Result<LoadedConfig, String> {
        let sources = ConfigSources {
            home: self.home.path(),
            cwd: Path::new("/project"),
            variable: &|name| self.variables.get(name).cloned(),
            overrides: &self.overrides,
            flags: &self.flags,
        };
        // The home directory has another name every time.
        load(&sources)
            .map_err(|error| error.to_string().replace(&self.home.path().display().to_string(), "~"))
    }

    fn config(&self) -> WindlassConfig {
        self.load().unwrap().config
    }

    fn problem(&self) -> String {
        self.load().unwrap_err()
    }
}

fn shown(loaded: &LoadedConfig, format: ConfigFormat, keys: &str) -> Vec<String> {
    show(loaded, format).lines().filter(|line| line.starts_with(keys)).map(str::to_owned).collect()
}

#[test]
fn without_any_source_everything_is_default() {
    assert_eq!(User::new().config(), WindlassConfig::default());
}

#[test]
fn every_default_is_a_value_one_could_set() {
    let known = KnownKeys::new();
    let defaults = Value::try_from(WindlassConfig::default()).unwrap();
    for setting in flattened(ConfigKey::root(), defaults, &SettingOrigin::Default) {
        assert_eq!(known.check(&setting.key, &setting.value), Ok(()), "{}", setting.key);
    }
}

#[test]
fn each_source_wins_over_the_ones_before_it() {
    let user = User::new().file("model = 'file'");
    let origin = |user: &User| {
        let loaded = user.load().unwrap();
        let path = user.home.path().display().to_string();
        shown(&loaded, ConfigFormat::TomlWithOrigins, "model =")[0].replace(&path, "~")
    };
    assert_eq!(origin(&user), r#"model = "file"  # ~/config.toml:1"#);
    let user = user.variable("WINDLASS_MODEL", "variable");
    assert_eq!(origin(&user), r#"model = "variable"  # WINDLASS_MODEL"#);
    let user = user.says("model=first").says("model=last");
    assert_eq!(origin(&user), r#"model = "last"  # -c"#);
    let user = user.flag("--model", "model", "flag");
    assert_eq!(origin(&user), r#"model = "flag"  # --model"#);
}

#[test]
fn every_variable_sets_its_key_and_an_empty_one_does_not() {
    let user = User::new()
        .variable("OPENAI_BASE_URL", "http://localhost/v1")
        .variable("WINDLASS_APPROVAL_POLICY", "never")
        .variable("WINDLASS_MODEL", "")
        .variable("WINDLASS_MODEL_PROVIDER", "vllm")
        .variable("WINDLASS_SANDBOX_MODE", "danger-full-access");
    let config = user.config();
    assert_eq!(config.openai_base_url.as_deref(), Some("http://localhost/v1"));
    assert_eq!(config.approval_policy, ApprovalPolicy::Never);
    assert_eq!(config.model, None);
    assert_eq!(config.model_provider.as_deref(), Some("vllm"));
    assert_eq!(config.sandbox_mode, SandboxMode::DangerFullAccess);
}

#[test]
fn tables_are_merged_key_by_key() {
    let user = User::new()
        .file("[sandbox_workspace_write]\nexclude_slash_tmp = true\nwritable_roots = ['/a', '/b']")
        .says("sandbox_workspace_write.network_access=true")
        .says("sandbox_workspace_write={ writable_roots = ['/c'] }");
    let expected = WorkspaceWrite {
        writable_roots: vec!["/c".into()],
        network_access: true,
        exclude_tmpdir_env_var: false,
        exclude_slash_tmp: true,
    };
    assert_eq!(user.config().sandbox_workspace_write, expected);
}

#[test]
fn one_key_of_a_built_in_provider_can_be_changed_alone() {
    let config = User::new().file("[model_providers.ollama]\nbase_url = 'http://box:1/v1'").config();
    let expected = Provider { base_url: Some("http://box:1/v1".to_owned()), ..presets()["ollama"].clone() };
    assert_eq!(config.model_providers["ollama"], expected);
    assert_eq!(config.model_providers.len(), presets().len());
}

#[test]
fn a_provider_of_ones_own_may_be_all_default() {
    let config = User::new().file("[model_providers.mine]").config();
    assert_eq!(config.model_providers["mine"], Provider::default());
}

#[test]
fn openai_base_url_moves_the_built_in_provider_unless_a_more_important_source_does() {
    let address = |user: &User| {
        let loaded = user.load().unwrap();
        shown(&loaded, ConfigFormat::TomlWithOrigins, "model_providers.openai.base_url").concat()
    };
    let user = User::new()
        .file("[model_providers.openai]\nbase_url = 'http://file'")
        .variable("OPENAI_BASE_URL", "http://variable");
    assert_eq!(address(&user), r#"model_providers.openai.base_url = "http://variable"  # OPENAI_BASE_URL"#);
    let user = user.says("model_providers.openai.base_url=http://here");
    assert_eq!(address(&user), r#"model_providers.openai.base_url = "http://here"  # -c"#);
}

#[test]
fn the_value_of_an_override_is_toml_or_else_text() {
    for (text, expected) in [
        ("model=o3", "o3"),
        (r#"model="o3""#, "o3"),
        ("model='o3'", "o3"),
        (" model = gpt 5 ", "gpt 5"),
        ("model=", ""),
        ("model=a=b", "a=b"),
        ("model=\"unclosed", "\"unclosed"),
        ("model=x\nsandbox_mode='danger-full-access'", "x\nsandbox_mode='danger-full-access'"),
    ] {
        let config = User::new().says(text).config();
        assert_eq!(config.model.as_deref(), Some(expected), "{text}");
        assert_eq!(config.sandbox_mode, SandboxMode::ReadOnly);
    }
}

#[test]
fn names_in_an_override_may_be_quoted() {
    let config = User::new().says(r#"model_providers."llama.cpp"."base_url"=http://x?a=b"#).config();
    assert_eq!(config.model_providers["llama.cpp"].base_url.as_deref(), Some("http://x?a=b"));
    let config = User::new().says(r#"shell_environment_policy.set."A=B"=c"#).config();
    assert_eq!(config.shell_environment_policy.set["A=B"], "c");
}

#[test]
fn client_libraries_are_understood() {
    let config = User::new()
        .says(r#"model_reasoning_effort="xhigh""#)
        .says("sandbox_workspace_write.network_access=true")
        .says(r#"web_search="live""#)
        .says(r#"approval_policy="on-failure""#)
        .says("show_raw_agent_reasoning=true")
        .says(r#"openai_base_url="http://localhost:1/v1""#)
        .config();
    assert_eq!(config.model_reasoning_effort.as_deref(), Some("xhigh"));
    assert!(config.sandbox_workspace_write.network_access && config.show_raw_agent_reasoning);
    assert_eq!(config.web_search, WebSearchMode::Live);
    assert_eq!(config.approval_policy, ApprovalPolicy::OnFailure);
}

#[test]
fn relative_paths_begin_at_the_file_or_at_the_working_directory() {
    let user = User::new().file(
        "model_instructions_file = 'prompt.md'\n[sandbox_workspace_write]\nwritable_roots = ['a', '/b', '~/c']",
    );
    let user = user.says("model_providers.scripted.script=demo.json");
    let config = user.config();
    let home = user.home.path();
    assert_eq!(config.model_instructions_file, Some(home.join("prompt.md")));
    assert_eq!(
        config.sandbox_workspace_write.writable_roots,
        [home.join("a"), "/b".into(), "/users/me/c".into()]
    );
    assert_eq!(config.model_providers["scripted"].script, Some("/project/demo.json".into()));
}

#[test]
fn all_problems_are_reported_at_once_each_with_its_place() {
    let user = User::new()
        .file(
            "sandbox_mode = \"none\"\nmodle = 'x'\n\n[sandbox_workspace_writ]\nnetwork_access = true\nexclude_slash_tmp = true\n\
             [model_providers.mine]\nrequest_max_retries = 'many'\n",
        )
        .variable("WINDLASS_APPROVAL_POLICY", "always")
        .says("web_search")
        .says("a b=1")
        .says("modell=x")
        .flag("--time-limit", "turn_time_limit_sec", 0);
    insta::assert_snapshot!(user.problem(), @r#"
    ~/config.toml:1:16: `sandbox_mode` must be one of "read-only", "workspace-write", "danger-full-access", "external-sandbox"; found string "none"
        sandbox_mode = "none"
                       ^^^^^^
    ~/config.toml:2:1: unknown key `modle`; did you mean `model`?
        modle = 'x'
        ^^^^^
    ~/config.toml:4:2: unknown key `sandbox_workspace_writ`; did you mean `sandbox_workspace_write`?
        [sandbox_workspace_writ]
         ^^^^^^^^^^^^^^^^^^^^^^
    ~/config.toml:8:23: `model_providers.mine.request_max_retries` must be a whole number, at least 0; found string "many"
        request_max_retries = 'many'
                              ^^^^^^
    WINDLASS_APPROVAL_POLICY: `approval_policy` must be one of "untrusted", "on-failure", "on-request", "never"; found string "always"
    -c: `web_search` has no value; write KEY=VALUE
    -c: `a b` is not a key; write names with dots between them and odd ones in quotes, as in a."b c".d
    -c: unknown key `modell`; did you mean `model`?
    --time-limit: `turn_time_limit_sec` must be a whole number, at least 1; found integer 0
    "#);
}

#[test]
fn a_syntax_error_names_the_line_and_the_column() {
    let problem = |text: &str| User::new().file(text).problem();
    insta::assert_snapshot!(problem("model = 'x'\nsandbox_mode = read-only\n"), @r"
    ~/config.toml:2:16: string values must be quoted, expected literal string
        sandbox_mode = read-only
                       ^^^^^^^^^
    ");
    insta::assert_snapshot!(problem("model = 'x'\nmodel = 'y'\n"), @r"
    ~/config.toml:2:1: duplicate key
        model = 'y'
        ^^^^^
    ");
    insta::assert_snapshot!(problem("turn_token_limit = 99999999999999999999"), @r"
    ~/config.toml:1:20: `turn_token_limit`: the number is out of range
        turn_token_limit = 99999999999999999999
                           ^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let user = User::new();
    fs::create_dir(file(user.home.path())).unwrap();
    assert!(user.problem().starts_with("~/config.toml: cannot be read: "), "{}", user.problem());
    let problem = User::new().file(b"model = '\xff'").problem();
    assert_eq!(problem, "~/config.toml: cannot be read: stream did not contain valid UTF-8");
}

#[test]
fn a_wrong_value_of_a_secret_key_is_not_printed() {
    let user = User::new().file("\n[model_providers.x]\nexperimental_bearer_token = 123456789\n");
    assert_eq!(
        user.problem(),
        "~/config.toml:3: `model_providers.x.experimental_bearer_token` must be text in quotes; found integer"
    );
}

#[test]
fn secrets_are_not_shown() {
    let user = User::new()
        .file(
            "[model_providers.x]\nbase_url = 'https://me:sk-1@host/v1'\nexperimental_bearer_token = 'sk-2'\n\
             http_headers = { authorization = 'sk-3' }\nquery_params = { code = 'sk-4' }\n\
             [shell_environment_policy.set]\nDEPLOY_TOKEN = 'sk-5'\nEDITOR = 'vi'\n",
        )
        .says("model_providers.y.experimental_bearer_token=sk-6");
    let loaded = user.load().unwrap();
    for format in [ConfigFormat::Toml, ConfigFormat::TomlWithOrigins, ConfigFormat::Json] {
        let text = show(&loaded, format);
        assert!(!text.contains("sk-"), "{text}");
        assert!(text.contains("vi"), "{text}");
    }
    assert_eq!(
        shown(&loaded, ConfigFormat::Toml, "model_providers.x.base_url"),
        [r#"model_providers.x.base_url = "https://<hidden>@host/v1""#]
    );
}

#[test]
fn what_is_shown_is_a_configuration_file() {
    let user = User::new()
        .file("developer_instructions = '''two\n\"lines\"\\'''\n[shell_environment_policy]\nset = { 'a.b' = 'c' }")
        .says("model_providers.mine={}")
        .says("turn_token_limit=5");
    let loaded = user.load().unwrap();
    for format in [ConfigFormat::Toml, ConfigFormat::TomlWithOrigins] {
        let again = User::new().file(show(&loaded, format));
        assert_eq!(again.config(), loaded.config);
    }
    let text = show(&loaded, ConfigFormat::Toml);
    // By the name of a key, without its quotes.
    assert!(text.lines().map(|line| line.replace('"', "")).is_sorted(), "{text}");
}

#[test]
fn as_json_every_key_has_its_value_and_origin() {
    let loaded = User::new().says("turn_token_limit=5").load().unwrap();
    let shown: serde_json::Value = serde_json::from_str(&show(&loaded, ConfigFormat::Json)).unwrap();
    assert_eq!(shown["turn_token_limit"], serde_json::json!({"value": 5, "origin": "-c"}));
    assert_eq!(shown["sandbox_mode"], serde_json::json!({"value": "read-only", "origin": "default"}));
}

#[test]
fn the_home_directory_is_named_by_a_variable_or_below_the_users() {
    let at = |variables: &[(&str, &str)]| {
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        home(&|name| variables.get(name).map(|value| (*value).to_owned()), Path::new("/project"))
    };
    assert_eq!(at(&[("WINDLASS_HOME", "/w"), ("HOME", "/me")]).unwrap(), Path::new("/w"));
    assert_eq!(at(&[("WINDLASS_HOME", "w")]).unwrap(), Path::new("/project/w"));
    assert_eq!(at(&[("WINDLASS_HOME", ""), ("HOME", "/me")]).unwrap(), Path::new("/me/.windlass"));
    assert_eq!(
        at(&[]).unwrap_err().to_string(),
        "WINDLASS_HOME: neither WINDLASS_HOME nor HOME is set; set one of them"
    );
}

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

#[test]
fn the_checked_in_schema_is_up_to_date() {
    let checked_in: serde_json::Value = serde_json::from_str(&document("config.schema.json")).unwrap();
    assert!(checked_in == schema(), "run `cargo run -- config schema > docs/config.schema.json`");
}

#[test]
fn every_key_is_described_in_the_guide_and_in_the_schema() {
    let guide = document("configuration.md");
    for (table, name) in KnownKeys::new().all() {
        let key = table.child(&*name);
        assert!(guide.contains(&format!("`{name}`")), "docs/configuration.md does not mention `{key}`");
    }
    let undescribed = |schema: &serde_json::Value| {
        let properties = schema.get("properties").and_then(serde_json::Value::as_object);
        let bare =
            properties.into_iter().flatten().filter(|(_, property)| property.get("description").is_none());
        bare.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let schema = schema();
    let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    assert_eq!(tables.flat_map(undescribed).collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_share_is_from_1_to_100_percent() {
    for percent in [0, 101, 255, 256] {
        let problem = User::new().file(format!("tool_context_percent = {percent}")).problem();
        let said = format!(
            "~/config.toml:1:24: `tool_context_percent` must be a whole number from 1 to 100; found integer {percent}\n"
        );
        assert!(problem.starts_with(&said), "{problem}");
    }
}
