//! Switches of the built-in tools, and descriptions that follow the policy.

use serde_json::Value;

use crate::support::{Server, User, Wire};

/// The tools of the first request with these options, by name.
fn offered(wire: Wire, options: &[&str]) -> (Vec<(String, Value)>, String) {
    let server = Server::start([wire.says("ok")]);
    let user = User::new();
    user.use_server(&server, wire);
    let ended = user.run(&[&["exec"], options, &["go"]].concat());
    ended.assert_code(0);
    let tools = server.requests()[0].body["tools"].as_array().cloned().unwrap_or_default();
    let function = |tool: Value| if wire == Wire::Chat { tool["function"].clone() } else { tool };
    let named = |tool: Value| (tool["name"].as_str().unwrap_or_default().to_owned(), tool);
    (tools.into_iter().map(function).map(named).collect(), ended.stderr)
}

fn names(options: &[&str]) -> Vec<String> {
    offered(Wire::Responses, options).0.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn tools_for_plans_patches_and_images_can_be_switched_off() {
    let has = |options: &[&str], name: &str| names(options).iter().any(|each| each == name);
    for (tool, switch) in [
        ("update_plan", "include_plan_tool=false"),
        ("view_image", "include_view_image_tool=false"),
        ("view_image", "tools.view_image=false"),
        ("edit_file", "edit_tool=disabled"),
        ("write_file", "edit_tool=disabled"),
    ] {
        assert!(has(&[], tool) && !has(&["-c", switch], tool), "{switch}");
    }
    assert!(!has(&[], "apply_patch") && has(&["-c", "include_apply_patch_tool=true"], "apply_patch"));
    let trained = ["-m", "gpt-5", "-c", "include_apply_patch_tool=false"];
    assert!(has(&trained[..2], "apply_patch") && !has(&trained, "apply_patch") && has(&trained, "edit_file"));
    let user = User::new();
    let call = ["call", "-c", "include_plan_tool=false", "update_plan", r#"{"plan":[]}"#];
    let ended = user.run(&call);
    assert!(ended.assert_code(2).stdout.contains("unsupported call: update_plan"), "{ended:#?}");
}

#[test]
fn the_tool_for_tests_is_there_only_if_switched_on() {
    let user = User::new();
    let run = |options: &[&str]| user.run(&[options, &["-c", "include_test_sync_tool=true"]].concat());
    let call = ["call", "test_sync_tool", "{}"];
    let ended = user.run(&call);
    assert!(ended.assert_code(2).stdout.contains("unsupported call: test_sync_tool"), "{ended:#?}");
    assert_eq!(run(&call).assert_code(0).stdout, "ok\n");
    assert!(!user.run(&["tools", "list"]).stdout.contains("test_sync_tool"));
    assert!(run(&["tools", "list"]).stdout.contains("\ntest_sync_tool      if called"));
    assert!(!names(&["-c", "include_test_sync_tool=true"]).iter().any(|name| name == "test_sync_tool"));
}

#[test]
fn a_local_shell_falls_back_on_a_wire_that_does_not_have_it() {
    let (tools, stderr) = offered(Wire::Chat, &["-c", "shell_tool=local_shell"]);
    assert!(tools.iter().any(|(name, _)| name == "shell_command"), "{tools:?}");
    assert!(stderr.contains("warning: the tool `local_shell` exists only with"), "{stderr}");
    let (tools, stderr) = offered(Wire::Responses, &["-c", "shell_tool=local_shell"]);
    assert!(
        !tools.iter().any(|(name, _)| name == "shell_command") && !stderr.contains("warning"),
        "{stderr}"
    );
}

#[test]
fn descriptions_follow_the_policy() {
    let shell = |options: &[&str]| {
        let (tools, _) = offered(Wire::Chat, options);
        tools.into_iter().find(|(name, _)| name == "shell_command").unwrap().1
    };
    let said = |options: &[&str]| shell(options)["description"].as_str().unwrap().to_owned();
    assert!(said(&[]).contains("read-only sandbox"));
    assert!(said(&["-s", "workspace-write"]).contains("can write to the workspace"));
    assert!(!said(&["-s", "danger-full-access"]).contains("sandbox"));
    // Nobody can be asked in `exec`, so nothing can be granted.
    assert_eq!(shell(&[])["parameters"]["properties"]["sandbox_permissions"], Value::Null);
}
